"""Sequences without positions: one sentence, or the empty result."""

import numpy as np
import pytest

from npformer import functional as F
from npformer import nn
from npformer.errors import UserError


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.MultiHeadAttention(8, 2), "attention needs at least one key"),
        (lambda: nn.SimilarityAttention(8, 2), "a softmax needs at least one entry in each row"),
        (lambda: nn.GlobalAttention(nn.Similarity("dot", 8, 8)), "a softmax needs at least one entry"),
        (lambda: nn.LocalMonotonic(nn.Similarity("dot", 8, 8)), "a softmax needs at least one entry"),
        (lambda: nn.HardAttention(nn.Similarity("dot", 8, 8)), "a softmax needs at least one entry"),
    ],
)
def test_a_memory_without_tokens_is_refused(make, text):
    x, memory = np.zeros((2, 3, 8), np.float32), np.zeros((2, 0, 8), np.float32)
    with pytest.raises(UserError, match=text):
        make().forward(x, memory)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.RelativeAttention(8, 2),
        lambda: nn.LatentAttention(8, 5),
        lambda: nn.BasicSelfAttention(),
        lambda: nn.Recurrent(8, 6),
        lambda: nn.Recurrent(8, 6, kind="gru"),
        lambda: nn.Bidirectional(8, 6),
    ],
)
def test_an_empty_sentence_is_refused(make):
    with pytest.raises(UserError, match="needs at least one"):
        make().forward(np.zeros((2, 0, 8), np.float32))


def test_no_queries_have_no_results_and_no_gradients():
    layer = nn.MultiHeadAttention(8, 2)
    memory = np.ones((2, 3, 8), np.float32)
    y, cache = layer.forward(memory[:, :0], memory, memory)
    assert y.shape == (2, 0, 8)
    for gradient in layer.backward(y, cache):
        assert not gradient.any()


@pytest.mark.parametrize(
    "function", [F.softmax, F.log_softmax, lambda x: F.cross_entropy(x, np.zeros(2, int))]
)
def test_rows_without_entries_are_refused(function):
    with pytest.raises(
        UserError, match=r"at least one entry in each row, and got an array of shape \(2, 0\)"
    ):
        function(np.zeros((2, 0)))


X = np.random.default_rng(0).standard_normal((2, 5, 8))
F64 = {"dtype": np.float64}
# the layers, with what forward takes
LAYERS = {
    "Linear": (nn.Linear(8, 4, **F64), X),
    "TiedProjection": (nn.TiedProjection(nn.Embedding(7, 8, **F64).weight), X),
    "Embedding": (nn.Embedding(7, 8, **F64), np.zeros((2, 5), int)),
    "InputEmbedding": (nn.InputEmbedding(7, 8, 9, **F64), np.zeros((2, 5), int)),
    "LayerNorm": (nn.LayerNorm(8, **F64), X),
    "RMSNorm": (nn.RMSNorm(8, **F64), X),
    "BatchNorm": (nn.BatchNorm(8, **F64), X),
    "AddNorm": (nn.AddNorm(8, **F64), X, X),
    "FeedForward": (nn.FeedForward(8, 16, **F64), X),
    "GatedFeedForward": (nn.GatedFeedForward(8, 16, **F64), X),
    "MultiHeadAttention": (nn.MultiHeadAttention(8, 2, **F64), X),
    "RelativeAttention": (nn.RelativeAttention(8, 2, **F64), X),
    "SimilarityAttention": (nn.SimilarityAttention(8, 2, **F64), X),
    "LatentAttention": (nn.LatentAttention(8, 5, **F64), X),
    "BasicSelfAttention": (nn.BasicSelfAttention(), X),
    "GlobalAttention": (nn.GlobalAttention(nn.Similarity("dot", 8, 8)), X, X),
    "LocalMonotonic": (nn.LocalMonotonic(nn.Similarity("dot", 8, 8)), X, X),
    "LocalPredictive": (nn.LocalPredictive(nn.Similarity("dot", 8, 8), **F64), X, X),
    "HardAttention": (nn.HardAttention(nn.Similarity("dot", 8, 8)), X, X),
    "AttentionalState": (nn.AttentionalState(8, 8, **F64), X, X),
    "Recurrent": (nn.Recurrent(8, 6, **F64), X),
    "Bidirectional": (nn.Bidirectional(8, 6, **F64), X),
    "LearnedPositions": (nn.LearnedPositions(9, 8, **F64), 5),
    "RotaryPositions": (nn.RotaryPositions(9, 8, **F64), X[:, None]),
    "Dropout": (nn.Dropout(0.5), X, nn.Context(train=True, rng=np.random.default_rng(0))),
}
WRONG = {
    "an axis less": lambda y: np.ones(y.shape[:-1]),
    "wider": lambda y: np.ones((*y.shape[:-1], y.shape[-1] + 1)),
    "a number": lambda y: 1.0,
    "one entry": lambda y: np.ones(1),
    "nothing": lambda y: None,
    "a list": lambda y: y.tolist(),
    "integers": lambda y: np.ones(y.shape, int),
    "more sentences": lambda y: np.ones((3, *y.shape[1:])),
    "one sentence for all": lambda y: np.ones((1, *y.shape[1:])),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", LAYERS)
def test_backward_says_in_one_sentence_what_is_wrong_with_dy(name, wrong):
    layer, *inputs = LAYERS[name]
    y, cache = layer.forward(*inputs)
    y = np.stack([y, y]) if name == "LearnedPositions" else y  # dy has an axis for the sentences
    if name in ("LearnedPositions", "RotaryPositions") and "sentence" in wrong:
        return  # any number of them
    with pytest.raises(UserError, match=r"^\w+\.backward takes .*dy (of shape|is|has dtype)"):
        layer.backward(WRONG[wrong](y), cache)
    layer.backward(np.ones(y.shape), cache)
