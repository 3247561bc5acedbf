"""The attention functions on arrays whose leading axes broadcast: gradients by complex step."""

import numpy as np
import pytest
from tiny import normal

import npformer.functional as F
from npformer.checking import gradcheck
from npformer.functional.linear import sum_to_shape
from npformer.nn.attention import MultiHeadAttention

LEADS = [((1, 3), (2, 1), (2, 3)), ((2, 3), (1, 3), (1, 1)), ((3,), (2, 3), (2, 1)), ((1, 1), (1, 1), (2, 3))]
leads = pytest.mark.parametrize("lead", LEADS, ids=str)
KEYS, VALUES = np.arange(15.0).reshape(5, 3) % 4 - 1, np.arange(10.0).reshape(5, 2) % 3 - 1
# the pairs, which of q, k, v and the scores they take, and their other arguments
PAIRS = {
    "attention": ("qkv", []),
    "attend": ("sv", []),
    "dot_similarity": ("qk", []),
    "general_similarity": ("qk", [(3, 3)]),
    "concat_similarity": ("qk", [(6,)]),
    "perceptron_similarity": ("qk", [(3, 2), (3, 2), (2,)]),
    **{
        f"{way} {positions}": ("qkv", vectors)
        for way in ("relative_attention", "relative_attention_by_distance")
        for positions, vectors in {
            "of keys": [KEYS, None],
            "of values": [None, VALUES],
            "of both": [KEYS, VALUES],
            "of neither": [None, None],
        }.items()
    },
}


def arrays(lead, letters="qkv"):
    shapes = {"q": (*lead[0], 4, 3), "k": (*lead[1], 5, 3), "v": (*lead[2], 5, 2), "s": (*lead[1], 4, 5)}
    return [normal(*shapes[letter], seed=seed) for seed, letter in enumerate(letters)]


@leads
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_exact(lead, name):
    letters, others = PAIRS[name]
    weights = [normal(*a, seed=6 + i) if isinstance(a, tuple) else a for i, a in enumerate(others)]
    function = name.partition(" ")[0]
    pair = (getattr(F, function), getattr(F, f"{function}_backward"))
    settings = {"p": 0.3, "rng": 7} if name == "attention" else {}
    report = gradcheck(pair, *arrays(lead, letters), *weights, **settings)
    assert report.ok, str(report)


@leads
def test_broadcast_attention_equals_attention_on_copies(lead):
    y, _ = F.attention(*arrays(lead))
    whole = np.broadcast_shapes(*lead)
    copies = [np.broadcast_to(x, whole + x.shape[-2:]) for x in arrays(lead)]
    np.testing.assert_allclose(y, F.attention(*copies)[0], rtol=1e-13)


@pytest.mark.parametrize("method", ["complex", "difference"])  # the second one uses the kernels
@pytest.mark.parametrize("batches", [(1, 2), (2, 1)])
def test_multi_head_attention_of_one_sentence_to_several(batches, method):
    layer = MultiHeadAttention(4, 2, rng=np.random.default_rng(0), dtype=np.float64)
    query, memory = normal(batches[0], 3, 4), normal(batches[1], 5, 4, seed=1)
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
