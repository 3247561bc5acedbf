"""Similarities as layers, and multi-head attention with any of them."""

import math

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.kernels import plain_pairs
from npformer.nn.attention import BasicSelfAttention, MultiHeadAttention, Similarity, SimilarityAttention
from npformer.nn.attention.similarity import SIMILARITIES

rng = np.random.default_rng(0)
X, MEMORY = rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 5, 6))
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])[:, None, None]  # (2, 1, 1, 5)
F8 = {"dtype": np.float64}
every_kind = pytest.mark.parametrize("kind", SIMILARITIES)


def heads(kind, make=SimilarityAttention, n_heads=3, **settings):
    """Return float64 heads with biases that are not 0."""
    settings |= {"similarity": kind} if make is SimilarityAttention else {}
    layer = make(6, n_heads, rng=np.random.default_rng(1), **F8, **settings)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value += np.random.default_rng(2).standard_normal(parameter.shape)
    return layer


# One similarity.


@every_kind
def test_the_scores_are_those_of_the_function_pairs(kind):
    layer = Similarity(kind, 6, 6, rng=np.random.default_rng(1), **F8)
    pair, pair_backward = SIMILARITIES[kind]
    weights = [parameter.value for parameter in layer.parameters()]
    scores, cache = layer.forward(X, MEMORY)
    expected, expected_cache = pair(X, MEMORY, *weights)
    np.testing.assert_array_equal(scores, expected)
    dq, dk = layer.backward(scores, cache)
    for ours, theirs in zip(
        (dq, dk, *(p.grad for p in layer.parameters())), pair_backward(scores, expected_cache), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("arguments", "width", "message"),
    [
        (
            ("cosine", 6, 6),
            None,
            "the similarity is 'cosine': choose one of dot, general, concat, ",
        ),
        (("dot", 6, 5), None, 'equal width, not 6 and 5: use "general"'),
        (("general", 6, 6), 3, '"perceptron" has a width, not "general"'),
    ],
)
def test_impossible_similarities(arguments, width, message):
    with pytest.raises(UserError, match=message):
        Similarity(*arguments, width=width)


# Without parameters.


def test_basic_self_attention_computed_with_loops():
    y, _ = BasicSelfAttention().forward(X)
    for b, i in np.ndindex(2, 4):
        raised = [math.exp(X[b, i] @ x) for x in X[b]]
        expected = sum(e * x for e, x in zip(raised, X[b], strict=True)) / sum(raised)
        np.testing.assert_allclose(y[b, i], expected, rtol=1e-12)


# Several heads.


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scale": False},
        {"dropout": 0.4},
        {"d_head": 4, "d_value": 5, "bias": False},
        {"activation": "relu", "output": False},
    ],
    ids=str,
)
def test_dot_is_multi_head_attention(settings):
    """Drawn parameters, values and all gradients are equal to the bit, without kernels."""
    layers = [heads("dot", make, **settings) for make in (MultiHeadAttention, SimilarityAttention)]
    outcomes = []
    for layer in layers:
        more = {"query_mask": np.arange(4)[:, None] != 1, "train": True, "rng": np.random.default_rng(3)}
        with plain_pairs():
            y, cache = layer.forward(X, MEMORY, mask=MASK, **more)
            grads = layer.backward(np.cos(y), cache)
        outcomes.append([y, cache.attention.weights, *grads, *(p.grad for p in layer.parameters())])
    for theirs, ours in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every_kind
def test_a_sentence_of_padding_gives_the_output_bias(kind):
    layer = heads(kind)
    y, cache = layer.forward(X, MEMORY, mask=np.zeros((2, 1, 1, 5), bool))
    np.testing.assert_array_equal(y, np.broadcast_to(layer.output.bias.value, y.shape))
    assert not any(grad.any() for grad in layer.backward(np.ones_like(y), cache))


def test_the_heads_share_one_trained_similarity():
    layer = heads("perceptron", width=5)
    shapes = {n: p.shape for n, p in layer.named_parameters() if n.startswith("similarity")}
    assert shapes == {
        "similarity.query_weight": (2, 5),
        "similarity.key_weight": (2, 5),
        "similarity.v": (5,),
    }
    y, cache = layer.forward(X)
    layer.backward(np.cos(y), cache)
    assert all(p.grad.any() for n, p in layer.named_parameters() if n.startswith("similarity"))
