"""Relative positions: both computations, the layer, and Transformers that use them."""

import math
import tracemalloc

import numpy as np
import pytest
from tiny import tiny_batch, tiny_config, tiny_model

import npformer.functional as F
from npformer import TransformerConfig, UserError
from npformer.checking import gradcheck
from npformer.cli.main import main
from npformer.functional.masks import Masking, causal_mask
from npformer.generation.state import CachedState, PrefixState
from npformer.kernels import plain_pairs
from npformer.models.registry import attention_layers, config_from_checkpoint
from npformer.nn.attention import MultiHeadAttention, RelativeAttention
from npformer.nn.show import named_arrays
from npformer.storage.checkpoint import load_checkpoint

rng = np.random.default_rng(0)
Q, K, V = (rng.standard_normal((2, 3, n, width)) for n, width in ((4, 5), (6, 5), (6, 2)))
KEY_POSITIONS, VALUE_POSITIONS = rng.standard_normal((5, 5)), rng.standard_normal((5, 2))  # from -2 to 2
ARRAYS = (Q, K, V, KEY_POSITIONS, VALUE_POSITIONS)
X = rng.standard_normal((2, 7, 6))
PAIRS = {
    "plain": (F.relative_attention, F.relative_attention_backward),
    "by distance": (F.relative_attention_by_distance, F.relative_attention_by_distance_backward),
}
either_way = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


def heads(make=RelativeAttention, dtype=np.float64, **settings):
    """Return multi-head attention with biases that are not 0."""
    settings = {"max_distance": 2, **settings} if make is RelativeAttention else settings
    layer = make(6, 3, rng=np.random.default_rng(1), dtype=dtype, **settings)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value += np.random.default_rng(2).standard_normal(parameter.shape).astype(dtype)
    return layer


# The pairs.


def test_the_distances_of_the_papers_figure():
    """Tokens 1 .. 6 and k = 2: all distances beyond 2 are treated as 2."""
    distance = F.clipped_distance(6, 6, 2, X)
    assert distance.tolist() == [
        [2, 3, 4, 4, 4, 4],
        [1, 2, 3, 4, 4, 4],
        [0, 1, 2, 3, 4, 4],
        [0, 0, 1, 2, 3, 4],
        [0, 0, 0, 1, 2, 3],
        [0, 0, 0, 0, 1, 2],
    ]
    assert F.clipped_distance(2, 6, 2, X, start=4).tolist() == distance[4:].tolist()
    assert F.clipped_distance(3, 3, 9, X).tolist() == [[9, 10, 11], [8, 9, 10], [7, 8, 9]]


@either_way
@pytest.mark.parametrize("start", [0, 2])
def test_attention_computed_with_loops(pair, start):
    """Equations 3 and 4 with a causal mask."""
    f, _ = pair
    mask = np.arange(6) <= np.arange(4)[:, None] + start
    y, cache = f(*ARRAYS, mask, start=start)
    for b, h, t in np.ndindex(2, 3, 4):
        e = {}
        for s in range(t + start + 1):
            row = min(max(s - (t + start), -2), 2) + 2
            key = [K[b, h, s, i] + KEY_POSITIONS[row, i] for i in range(5)]
            e[s] = math.exp(sum(Q[b, h, t, i] * key[i] for i in range(5)) / math.sqrt(5))
        for j in range(2):
            z = 0
            for s, score in e.items():
                row = min(max(s - (t + start), -2), 2) + 2
                z += score / sum(e.values()) * (V[b, h, s, j] + VALUE_POSITIONS[row, j])
            assert y[b, h, t, j] == pytest.approx(z, rel=1e-12)
        assert cache.weights[b, h, t, 0] == pytest.approx(e[0] / sum(e.values()), rel=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"start": 2, "scale": 0.3},
        {"p": 0.4},
        {"mask": np.arange(6) < 4, "query_mask": np.arange(4)[:, None] != 2},
        {"mask": np.zeros((2, 1, 4, 6), bool), "masking": Masking(-1.0, "add")},
        {
            "mask": np.arange(6) < 4,
            "query_mask": np.ones((4, 1), bool),
            "masking": Masking(-9.0, query="before"),
        },
    ],
    ids=str,
)
@pytest.mark.parametrize("given", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_both_computations_give_the_same(settings, given):
    """Compare values, weights, and the gradients of all arrays."""
    positions = [p if g else None for p, g in zip(ARRAYS[3:], given, strict=True)]
    outcomes = []
    for f, f_backward in PAIRS.values():
        y, cache = f(Q, K, V, *positions, **settings, rng=np.random.default_rng(3))
        outcomes.append([y, cache.weights, *f_backward(np.cos(y), cache)])
    for plain, ours in zip(*outcomes, strict=True):
        if plain is None:
            assert ours is None
        else:
            np.testing.assert_allclose(ours, plain, rtol=1e-11, atol=1e-13)


def test_spread_and_collect_computed_with_loops():
    distance = F.clipped_distance(4, 6, 2, X, start=1)
    x, y = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 4, 6))
    spread, collected = F.spread_by_distance(x, distance), F.collect_by_distance(y, distance, 5)
    for t in range(4):
        for s in range(6):
            np.testing.assert_array_equal(spread[:, :, t, s], x[:, :, t, distance[t, s]])
        for r in range(5):
            total = sum(y[:, :, t, s] for s in range(6) if distance[t, s] == r)
            np.testing.assert_allclose(collected[:, :, t, r], total, rtol=1e-12, atol=1e-15)
    assert (spread * y).sum() == pytest.approx((x * collected).sum(), rel=1e-12)  # they are adjoint


def test_without_position_vectors_it_is_plain_attention():
    y, _ = F.attention(Q, K, V)
    np.testing.assert_array_equal(F.relative_attention_by_distance(Q, K, V)[0], y)
    np.testing.assert_allclose(F.relative_attention(Q, K, V)[0], y, rtol=1e-12)


@either_way
def test_a_single_vector_for_all_distances_carries_no_position(pair):
    """k = 0, the worst row of the paper: it cancels in the softmax and shifts all values equally."""
    f, _ = pair
    same, moved = KEY_POSITIONS[:1], VALUE_POSITIONS[:1]
    np.testing.assert_allclose(f(Q, K, V, same, moved)[0], F.attention(Q, K, V)[0] + moved[0], rtol=1e-11)


@either_way
def test_a_fully_masked_query_has_output_0(pair):
    f, f_backward = pair
    mask = np.ones((4, 6), bool)
    mask[1] = False
    y, cache = f(*ARRAYS, mask)
    assert not y[:, :, 1].any()
    grads = f_backward(np.ones_like(y), cache)
    assert not grads[0][:, :, 1].any()
    assert all(np.isfinite(grad).all() for grad in grads)


@either_way
def test_float32_stays_float32(pair):
    f, f_backward = pair
    y, cache = f(*(a.astype(np.float32) for a in ARRAYS), p=0.3, rng=np.random.default_rng(0))
    arrays = [y, *f_backward(y, cache), *(array for _, array in named_arrays(cache))]
    assert {array.dtype for array in arrays if array.dtype.kind == "f"} == {np.dtype(np.float32)}


def test_by_distance_needs_no_array_of_the_vectors_of_all_pairs():
    """Forward and backward allocate less memory than one array (B, H, T, S, K)."""
    shape = (4, 4, 48, 16)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    positions = rng.standard_normal((17, 16)).astype(np.float32)  # R is about as large as K, as in the paper

    def peak(f, f_backward):
        tracemalloc.start()
        y, cache = f(q, k, v, positions, positions)
        f_backward(y, cache)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    plain, by_distance = (peak(*pair) for pair in PAIRS.values())
    of_pairs = 4 * math.prod(shape) * 48  # bytes of (B, H, T, S, K)
    assert plain > 2 * of_pairs
    assert by_distance < of_pairs
    assert by_distance < plain / 6


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ((KEY_POSITIONS, VALUE_POSITIONS[1:4]), "there are 5 vectors for keys and 3 for values"),
        ((KEY_POSITIONS[1:], None), r"there are 4 vectors for the distances: give 2 k \+ 1"),
    ],
)
@either_way
def test_vectors_of_the_wrong_number(pair, positions, message):
    with pytest.raises(UserError, match=message):
        pair[0](Q, K, V, *positions)


# The layer.


def test_with_vectors_of_zeros_it_is_multi_head_attention():
    plain, relative = heads(MultiHeadAttention), heads()
    relative.key_positions.value[...] = relative.value_positions.value[...] = 0
    np.testing.assert_allclose(relative.forward(X)[0], plain.forward(X)[0], rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.4}, {"fused": "qkv", "d_value": 3}], ids=str)
def test_without_vectors_it_is_multi_head_attention_to_the_bit(settings):
    outcomes = []
    with plain_pairs():  # relative attention has no kernel, and a kernel would sum in another order
        for more in ({"make": MultiHeadAttention}, {"on_keys": False, "on_values": False}):
            layer = heads(**more, **settings)
            y, cache = layer.forward(X, mask=causal_mask(7, X), train=True, rng=np.random.default_rng(3))
            outcomes.append([y, layer.backward(np.cos(y), cache), *(p.grad for p in layer.parameters())])
    for theirs, ours in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_heads_share_the_vectors():
    layer = heads(max_distance=4, d_value=3)
    shapes = {n: p.shape for n, p in layer.named_parameters() if n.endswith("positions")}
    assert shapes == {"key_positions": (9, 2), "value_positions": (9, 3)}
    _, cache = layer.forward(X)
    (q, k, v), _ = layer.project(X, X, X)
    for head in range(3):
        one = [a[:, head : head + 1] for a in (q, k, v)]
        y, _ = F.relative_attention(*one, layer.key_positions.value, layer.value_positions.value)
        np.testing.assert_allclose(cache.output.x[..., 3 * head : 3 * head + 3], y[:, 0], rtol=1e-12)


def test_a_shift_of_the_sentence_changes_nothing():
    """A sentence three positions further on, behind padding, has the same outputs."""
    layer = heads()
    moved = np.concatenate([rng.standard_normal((2, 3, 6)), X], 1)
    y, _ = layer.forward(moved, mask=np.arange(10) >= 3)
    np.testing.assert_allclose(y[:, 3:], layer.forward(X)[0], rtol=1e-11)


def test_the_order_of_the_tokens_matters():
    order = np.array([2, 0, 1, 4, 3, 6, 5])
    plain, relative = heads(MultiHeadAttention), heads()
    np.testing.assert_allclose(plain.forward(X[:, order])[0], plain.forward(X)[0][:, order], rtol=1e-10)
    assert np.abs(relative.forward(X[:, order])[0] - relative.forward(X)[0][:, order]).max() > 0.01


def test_beyond_the_largest_distance_only_the_side_matters():
    """Exchanging tokens 0 .. 3 does not change the output at the last position, but moving token 4 does."""
    layer = heads()
    changed = X[:, [3, 1, 0, 2, 4, 5, 6]]
    whole, _ = layer.forward(X)
    np.testing.assert_allclose(layer.forward(changed)[0][:, 6], whole[:, 6], rtol=1e-11)
    assert np.abs(layer.forward(X[:, [0, 1, 2, 5, 4, 3, 6]])[0][:, 6] - whole[:, 6]).max() > 0.01


@pytest.mark.parametrize("cuts", [[1] * 7, [3, 4], [2, 1, 4], [7]], ids=str)
@pytest.mark.parametrize("settings", [{}, {"fused": "qkv"}, {"on_keys": False}], ids=str)
def test_decoding_step_by_step_gives_the_rows_of_the_whole_sentence(cuts, settings):
    """The positions continue after those in the KV cache: one token at a time, or several at once."""
    layer = heads(**settings)
    whole, _ = layer.forward(X, mask=causal_mask(7, X))
    kv_cache, rows, start = None, [], 0
    for n in cuts:
        mask = causal_mask(start + n, X)[start:]
        y, kv_cache = layer.decode_step(X[:, start : start + n], kv_cache, mask)
        rows.append(y)
        start += n
    np.testing.assert_allclose(np.concatenate(rows, 1), whole, rtol=1e-11)


def test_gradients_are_exact():
    report = gradcheck(heads(dropout=0.2), X, mask=causal_mask(7, X), train=True, rng=5, tolerance=1e-12)
    assert report.ok, str(report)


def test_scores_can_be_inspected():
    layer = heads()
    _, cache = layer.forward(X)
    weights, _ = F.softmax(cache.attention.scores)
    np.testing.assert_allclose(cache.attention.weights, weights, rtol=1e-12)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: heads(max_distance=0), "max_distance is 0: it must be a whole number, 1 or more"),
        (lambda: heads(max_distance=2.5), "max_distance is 2.5"),
        (lambda: heads().forward(X, X), "keys from elsewhere were given: use MultiHeadAttention"),
        (lambda: heads().project_memory(X), "keys from elsewhere were given: use MultiHeadAttention"),
        (lambda: RelativeAttention(7, 3), "d_model 7 is not divisible by 3 heads"),
    ],
)
def test_invalid_inputs_are_refused(mistake, message):
    with pytest.raises(UserError, match=message):
        mistake()


# Transformers.


@pytest.mark.parametrize("fused", [False, True])
def test_a_transformer_uses_them_in_self_attention_only(fused):
    model = tiny_model(positions="relative", max_distance=3, fused_projections=fused)
    assert model.source.positions is None
    assert model.target.positions is None
    named = [name for name, _ in model.named_parameters() if "positions" in name]
    assert named == [
        f"{stack}.layers.{i}.self_attention.{which}_positions"
        for stack in ("encoder", "decoder")
        for i in range(2)
        for which in ("key", "value")
    ]
    source, target_in, _ = tiny_batch()
    _, cache = model.forward(source, target_in)
    for kind, shape in {"encoder": (3, 2, 6, 6), "decoder": (3, 2, 5, 5), "cross": (3, 2, 5, 6)}.items():
        assert [weights.shape for weights in attention_layers(cache, kind)] == [shape] * 2


@pytest.mark.parametrize("changes", [{}, {"norm": "pre", "final_norm": True, "fused_projections": True}])
def test_decoding_with_a_kv_cache_equals_decoding_without(changes):
    model = tiny_model(positions="relative", max_distance=2, **changes)
    source, _, _ = tiny_batch()
    cached, prefix = CachedState(model, source), PrefixState(model, source)
    for _ in range(6):
        words = rng.integers(4, 9, 3)
        np.testing.assert_allclose(cached.decode_step(words), prefix.decode_step(words), rtol=1e-9)


def test_sentences_may_be_longer_than_the_largest_distance():
    model = tiny_model(positions="relative", max_distance=1)
    source = rng.integers(4, 9, (1, 12))
    assert np.isfinite(model.forward(source, source)[0]).all()


def test_settings_of_a_configuration():
    assert TransformerConfig().max_distance == 16
    assert not tiny_config(positions="relative").adds_positions
    assert tiny_config(positions="learned").adds_positions
    assert tiny_config(positions="relative", d_model=9, n_heads=3).d_model == 9  # no sinusoids
    with pytest.raises(UserError, match="max_distance is 0: it must be a whole number, 1 or more"):
        tiny_config(max_distance=0)


def test_a_training_step_on_the_device_equals_that_on_the_host(device):
    source, target_in, _ = tiny_batch()
    host, there = (tiny_model(positions="relative", max_distance=2) for _ in range(2))
    there.to("cupy")
    outcomes = []
    for model in (host, there):
        logits, cache = model.forward(source, target_in)
        model.backward(logits, cache)
        outcomes.append([logits, model.grads])
    for here, other in zip(*outcomes, strict=True):
        np.testing.assert_allclose(device.asnumpy(other), here, rtol=1e-10, atol=1e-12)


def test_the_commands_for_training_translating_and_attention(tmp_path, capsys):
    """Run the commands on the built-in corpus, with a checkpoint and a resumed run."""
    run, sentence = str(tmp_path / "run"), "the dog is tired"
    sizes = {
        "positions": "relative",
        "max_distance": 3,
        "d_model": 16,
        "d_ff": 16,
        "n_heads": 2,
        "n_layers": 1,
    }
    settings = [part for name, value in sizes.items() for part in ("--set", f"{name}={value}")]
    assert main(["train", "--steps", "3", "--run", run, *settings]) == 0
    assert main(["train", "--resume", run]) == 0
    model = config_from_checkpoint(load_checkpoint(tmp_path / "run" / "last.safetensors"))
    assert (model.positions, model.max_distance) == ("relative", 3)
    assert main(["translate", "--model", run, sentence]) == 0
    assert main(["attention", "--model", run, "--out", str(tmp_path), sentence]) == 0
    assert (tmp_path / "encoder_grid.png").exists()
    assert sentence in capsys.readouterr().out
