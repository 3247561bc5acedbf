"""The KV cache: decoding with it equals the forward pass, and a PreallocatedKVCache is written in place."""

import numpy as np
import pytest
from tiny import normal

from npformer import MultiHeadAttention, UserError
from npformer.functional.masks import causal_mask
from npformer.nn import LearnedPositions, PreallocatedKVCache, RotaryPositions
from npformer.nn.attention import (
    MultiHeadLatentAttention,
    QKNormAttention,
    RelativeAttention,
    SimilarityAttention,
)
from npformer.nn.context import AttentionMask

F8 = {"dtype": np.float64}
LENGTH = 7


def heads(kind=MultiHeadAttention, n_heads=4, **settings):
    return kind(12, n_heads, rng=np.random.default_rng(1), **F8, **settings)


KINDS = {
    "multi-head": {},
    "grouped": {"n_kv_heads": 2, "d_value": 5},
    "multi-query": {"n_kv_heads": 1, "fused": "qkv"},
    "multi-query, two heads": {"n_heads": 2, "n_kv_heads": 1},
    "rotary": {"n_kv_heads": 2, "d_head": 4, "rotary": RotaryPositions(LENGTH, 4, **F8)},
    "similarity": {"kind": SimilarityAttention, "similarity": "perceptron", "n_kv_heads": 2},
    "relative": {"kind": RelativeAttention, "max_distance": 2, "n_kv_heads": 2},
    "latent": {
        "kind": MultiHeadLatentAttention,
        "d_latent": 5,
        "d_query_latent": 6,
        "d_head": 3,
        "d_value": 2,
        "rotary": RotaryPositions(LENGTH, 5, rotated=2, **F8),
    },
}
every_kind = pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)


@every_kind
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("steps", [(1,) * 7, (4, 1, 1, 1), (2, 3, 2)])
@pytest.mark.parametrize(
    "make_cache", [lambda: None, lambda: PreallocatedKVCache(LENGTH)], ids=["copied", "preallocated"]
)
def test_decoding_equals_the_forward_pass(settings, window, steps, make_cache):
    layer, x = heads(**settings), normal(2, LENGTH, 12)
    whole, _ = layer.forward(x, mask=causal_mask(LENGTH, x, window=window))
    done, kv_cache = 0, make_cache()
    for n in steps:
        mask = causal_mask(n, x, window=window, start=done)
        y, kv_cache = layer.decode_step(x[:, done : done + n], kv_cache, mask)
        np.testing.assert_allclose(y, whole[:, done : done + n], rtol=1e-12, atol=1e-13)
        done += n
    assert kv_cache.length == LENGTH


@every_kind
def test_a_mask_may_differ_between_query_heads(settings):
    layer, x = heads(**settings), normal(2, LENGTH, 12)
    of_heads = np.random.default_rng(3).random((2, layer.n_heads, LENGTH, LENGTH)) < 0.7
    whole, _ = layer.forward(x, mask=causal_mask(LENGTH, x) & of_heads)
    kv_cache = PreallocatedKVCache(LENGTH)
    for t in range(LENGTH):
        y, kv_cache = layer.decode_step(x[:, t : t + 1], kv_cache, of_heads[:, :, t : t + 1, : t + 1])
        np.testing.assert_allclose(y, whole[:, t : t + 1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"fused": "kv"},
        {"kdim": 5, "vdim": 5},
        {"kind": QKNormAttention},
        {"kind": QKNormAttention, "whole": True, "n_kv_heads": 2},
        {"kind": SimilarityAttention, "similarity": "perceptron"},
        {"n_kv_heads": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize(("length", "n_masks"), [(1, 1), (1, 4), (3, 4)])
def test_attention_to_a_memory_equals_the_forward_pass(settings, length, n_masks):
    layer = heads(**settings)
    x, memory = normal(2, length, 12), normal(2, LENGTH, layer.d_inputs[1], seed=1)
    for parameter in layer.parameters():
        parameter.value *= np.linspace(0.5, 1.5, parameter.value.size).reshape(parameter.shape)
    draw = np.random.default_rng(3)
    allowed, queries = (draw.random((2, n_masks, length, n)) < 0.7 for n in (LENGTH, 1))
    mask = AttentionMask(allowed | ~allowed.any(-1, keepdims=True), queries)
    expected, _ = layer.forward(x, memory, mask=mask)
    y = layer.attend_memory(x, layer.project_memory(memory), mask)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-13)


def test_fused_queries_and_keys_have_no_memory():
    with pytest.raises(UserError, match='fused as "qkv" take 1 of query, key and value'):
        heads(fused="qkv").project_memory(normal(2, LENGTH, 12))


def test_steps_write_into_the_same_arrays():
    cache = PreallocatedKVCache(5)
    k, v = normal(2, 3, 4, 6), normal(2, 3, 4, 2, seed=1)
    assert cache.extended(k[:, :, :2], v[:, :, :2]) is cache
    first, size = cache.k, cache.nbytes
    cache.extended(k[:, :, 2:], v[:, :, 2:])
    np.testing.assert_array_equal(cache.k, k)
    np.testing.assert_array_equal(cache.v, v)
    assert np.shares_memory(first, cache.k)
    assert cache.nbytes == size == 2 * 3 * 5 * (6 + 2) * 8


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_a_step_does_not_repeat_keys_and_values(n_kv_heads):
    """The attention of a step reads views of the cache."""
    layer, x, seen = heads(n_kv_heads=n_kv_heads), normal(2, LENGTH, 12), []
    attend = layer.attend
    layer.attend = lambda q, k, v, mask: seen.append((k, v)) or attend(q, k, v, mask)
    _, cache = layer.decode_step(x[:, :-1], PreallocatedKVCache(LENGTH), causal_mask(LENGTH - 1, x))
    _, cache = layer.decode_step(x[:, -1:], cache)
    k, v = seen[-1]
    assert k.shape == (2, n_kv_heads, LENGTH, 3)
    assert np.shares_memory(k, cache.k)
    assert np.shares_memory(v, cache.v)


def test_latent_attention_caches_latent_vectors_and_one_rotated_key_for_all_heads():
    layer, x = heads(**KINDS["latent"]), normal(2, LENGTH, 12)
    _, cache = layer.decode_step(x, PreallocatedKVCache(LENGTH), causal_mask(LENGTH, x))
    assert cache.nbytes == 2 * LENGTH * (5 + 2) * 8
    _, forward_cache = layer.forward(x)
    np.testing.assert_allclose(cache.k[..., 2:], layer.latent(x)[:, None])
    np.testing.assert_allclose(forward_cache.attention.k[..., :2], cache.k[..., :2].repeat(4, 1))
    with pytest.raises(UserError, match="and they have 2 rotated ones and 4 others: make it with d_head 6"):
        heads(**KINDS["latent"] | {"d_head": 4})


@pytest.mark.parametrize("length", [3, np.array([3, 1])], ids=["equal", "different"])
def test_chosen_sentences_are_independent_of_the_old_ones(length):
    cache, k, v = PreallocatedKVCache(6), normal(2, 3, 4, 5), normal(2, 3, 4, 2, seed=1)
    cache.extended(k[:, :, :3], v[:, :, :3])
    cache.length = length
    taken = cache.take_rows(np.array([1, 1, 0]))
    lengths = np.broadcast_to(length, 2)[[1, 1, 0]]
    assert np.broadcast_to(taken.length, 3).tolist() == lengths.tolist()
    taken.extended(k[[0, 1, 1], :, 3:], v[[0, 1, 1], :, 3:])
    for row, (old, new) in enumerate([(1, 0), (1, 1), (0, 1)]):
        np.testing.assert_array_equal(taken.k[row, :, : lengths[row]], k[old, :, : lengths[row]])
        np.testing.assert_array_equal(taken.v[row, :, lengths[row]], v[new, :, 3])
    np.testing.assert_array_equal(cache.k, k[:, :, :3])
    assert PreallocatedKVCache(2).take_rows(np.array([0])).nbytes == 0


def test_a_full_cache_is_not_extended():
    cache, k = PreallocatedKVCache(3), normal(1, 1, 2, 2)
    cache.extended(k, k)
    with pytest.raises(UserError, match="has room for 3 positions, and 4 are needed: make it larger"):
        cache.extended(k, k)
    assert cache.length == 2


# Positions and masks that begin at a place of their own in each sentence


def test_sentences_of_different_lengths_are_extended_by_several_positions():
    cache, k, v = PreallocatedKVCache(6), normal(2, 4, 5, 6), normal(2, 4, 5, 3, seed=1)
    cache.extended(k[:, :, :3], v[:, :, :3])
    cache.length = np.array([1, 3])
    cache.extended(k[:, :, 3:], v[:, :, 3:])
    for sentence, start in ((0, 1), (1, 3)):
        np.testing.assert_array_equal(cache.k[sentence, :, start : start + 2], k[sentence, :, 3:])
        np.testing.assert_array_equal(cache.v[sentence, :, start : start + 2], v[sentence, :, 3:])


def test_learned_positions_with_different_starts():
    layer = LearnedPositions(6, 4, rng=np.random.default_rng(0))
    y, _ = layer.forward(3, np.array([2, 0]))
    np.testing.assert_array_equal(y, [layer.weight.value[2:5], layer.weight.value[:3]])
    with pytest.raises(UserError, match="position"):
        layer.forward(3, np.array([0, 4]))
