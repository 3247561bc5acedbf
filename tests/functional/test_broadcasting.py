"""The attention functions on arrays whose leading axes broadcast: gradients by complex step."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking import gradcheck
from npformer.functional.attend import attend, attend_backward
from npformer.functional.linear import sum_to_shape
from npformer.functional.similarity import (
    concat_similarity,
    concat_similarity_backward,
    dot_similarity,
    dot_similarity_backward,
    general_similarity,
    general_similarity_backward,
    perceptron_similarity,
    perceptron_similarity_backward,
)
from npformer.nn.attention import MultiHeadAttention

LEADS = [((1, 3), (2, 1), (2, 3)), ((2, 3), (1, 3), (1, 1)), ((3,), (2, 3), (2, 1)), ((1, 1), (1, 1), (2, 3))]
leads = pytest.mark.parametrize("lead", LEADS, ids=str)
SIMILARITIES = {
    "dot": (dot_similarity, dot_similarity_backward, []),
    "general": (general_similarity, general_similarity_backward, [(3, 3)]),
    "concat": (concat_similarity, concat_similarity_backward, [(6,)]),
    "perceptron": (perceptron_similarity, perceptron_similarity_backward, [(3, 2), (3, 2), (2,)]),
}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def qkv(lead):
    return [
        numbers(*part, *shape, seed=i)
        for i, (part, shape) in enumerate(zip(lead, [(4, 3), (5, 3), (5, 2)], strict=True))
    ]


@leads
@pytest.mark.parametrize("p", [0, 0.3])
def test_attention(lead, p):
    report = gradcheck((F.attention, F.attention_backward), *qkv(lead), p=p, rng=7)
    assert report.ok, str(report)


@leads
def test_broadcast_attention_equals_attention_on_copies(lead):
    arrays = qkv(lead)
    y, _ = F.attention(*arrays)
    whole = np.broadcast_shapes(*lead)
    copies = [np.broadcast_to(x, whole + x.shape[-2:]) for x in arrays]
    np.testing.assert_allclose(y, F.attention(*copies)[0], rtol=1e-13)


@leads
def test_attend(lead):
    _, of_key, of_value = lead
    report = gradcheck((attend, attend_backward), numbers(*of_key, 4, 5), numbers(*of_value, 5, 2, seed=1))
    assert report.ok, str(report)


@leads
@pytest.mark.parametrize("positions", ["keys", "values", "both", "none"])
@pytest.mark.parametrize("way", ["relative_attention", "relative_attention_by_distance"])
def test_relative_attention(lead, positions, way):
    vectors = {
        "key_positions": numbers(5, 3, seed=4) if positions in ("keys", "both") else None,
        "value_positions": numbers(5, 2, seed=5) if positions in ("values", "both") else None,
    }
    pair = (getattr(F, way), getattr(F, f"{way}_backward"))
    report = gradcheck(pair, *qkv(lead), *vectors.values())
    assert report.ok, str(report)


@leads
@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarities(lead, name):
    forward, backward, shapes = SIMILARITIES[name]
    q, k, _ = qkv(lead)
    weights = [numbers(*shape, seed=6 + i) for i, shape in enumerate(shapes)]
    report = gradcheck((forward, backward), q, k, *weights)
    assert report.ok, str(report)


@pytest.mark.parametrize("method", ["complex", "difference"])  # the second one uses the kernels
@pytest.mark.parametrize("batches", [(1, 2), (2, 1)])
def test_multi_head_attention_of_one_sentence_to_several(batches, method):
    layer = MultiHeadAttention(4, 2, rng=np.random.default_rng(0), dtype=np.float64)
    query, memory = numbers(batches[0], 3, 4), numbers(batches[1], 5, 4, seed=1)
    report = gradcheck(layer, query, memory, method=method)
    assert report.ok, str(report)
    y, _ = layer.forward(query, memory)
    for i in range(2):
        alone, _ = layer.forward(query[i % len(query) :][:1], memory[i % len(memory) :][:1])
        np.testing.assert_allclose(y[i], alone[0], rtol=1e-12)


def test_sum_to_shape():
    x = np.arange(24.0).reshape(2, 3, 4)
    assert sum_to_shape(x, (2, 3, 4)) is x
    np.testing.assert_array_equal(sum_to_shape(x, (3, 4)), x.sum(0))
    np.testing.assert_array_equal(sum_to_shape(x, (2, 1, 4)), x.sum(1, keepdims=True))
    np.testing.assert_array_equal(sum_to_shape(x, (1, 4)), x.sum((0, 1))[None])
    assert sum_to_shape(x, ()) == x.sum()
