"""Inputs that do not fit a layer raise one sentence with the shapes, and no error of NumPy."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import attention
from npformer.models.classifier import ClassifierHead
from npformer.nn import (
    Embedding,
    FeedForward,
    InputEmbedding,
    LearnedPositions,
    Linear,
    Recurrent,
    RotaryPositions,
)
from npformer.nn.attention import (
    BucketedAttention,
    GlobalAttention,
    LatentAttention,
    LocalPredictive,
    MultiHeadAttention,
    Similarity,
)
from npformer.nn.output import CappedOutput

F8 = {"dtype": np.float64}
X, NARROW, IDS = np.ones((2, 3, 6)), np.ones((2, 3, 5)), np.array([[1, 2, 0]])
SIMILARITY = Similarity("general", 6, 4, **F8)
CAPPED = CappedOutput(Linear(6, 5, **F8), 2.0)
HEADS = MultiHeadAttention(6, 2, **F8).forward


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: HEADS(X, NARROW), r"takes key of shape \(B, T, 6\) and got \(2, 3, 5\)"),
        (lambda: HEADS(X, X, NARROW), r"takes value of shape \(B, T, 6\) and got \(2, 3, 5\)"),
        (lambda: HEADS(X, np.ones((3, 4, 6))), r"query of shape \(2, 3, 6\) and key of shape \(3, 4, 6\)"),
        (lambda: HEADS(X, X, np.ones((3, 3, 6))), r"equal batch sizes .* value of shape \(3, 3, 6\)"),
        (lambda: HEADS(X, X, X[:, :2]), r"a value for each key and got key of shape \(2, 3, 6\) and value"),
        (lambda: LatentAttention(6, 8, **F8).forward(X, X[0]), r"takes values of shape \(2, 3, L\) and got"),
        (
            lambda: Embedding(9, 6).forward(IDS + 8),
            "Embedding has 9 rows and ids range from 8 to 10: use ids",
        ),
        (lambda: Embedding(9, 6).forward(IDS - 1), "range from -1 to 1: use ids from 0 to 8"),
        (lambda: InputEmbedding(9, 6, 4).forward(IDS[0]), r"InputEmbedding takes ids of shape \(B, T\)"),
        (lambda: InputEmbedding(9, 6, 2).forward(IDS), "FixedPositions has 2 positions and 3 are needed"),
        (lambda: LearnedPositions(4, 6).forward(3, start=2), "LearnedPositions has 4 positions and 5 are"),
        (lambda: BucketedAttention(6, 2).forward(X, X), "a relative bias needs queries and keys of one sent"),
        (lambda: BucketedAttention(6, 2, n_buckets=3), "n_buckets is 3 and max_distance 128: give at least"),
        (lambda: BucketedAttention(6, 2, max_distance=16), "n_buckets is 32 and max_distance 16: give at le"),
        (lambda: RotaryPositions(3, 4, rotated=6), "rotated is 6, and a head has 4 columns: make it smaller"),
        (lambda: GlobalAttention(SIMILARITY).forward(X, X), r"takes memory of shape \(B, S, 4\)"),
        (lambda: GlobalAttention(SIMILARITY).forward(X, np.ones((4, 3, 4))), "takes equal batch sizes"),
        (lambda: LocalPredictive(SIMILARITY).forward(X, np.ones((1, 3, 4))), "takes equal batch sizes"),
        (lambda: FeedForward(8, 8, activation="rellu"), "activation is 'rellu': choose one of"),
        (lambda: MultiHeadAttention(8, 2, activation="rellu"), "activation is 'rellu': choose one of"),
        (lambda: ClassifierHead(8, 3, hidden="relux"), "hidden is 'relux': choose one of tanh, relu"),
        (lambda: MultiHeadAttention(8, 2, fused="qk"), "fused is 'qk': choose one of no, kv, qkv"),
        (lambda: CAPPED.backward(np.ones(5), CAPPED.forward(X)[1]), r"dy of shape \(2, 3, 5\)"),
        (lambda: Recurrent(6, 4, **F8).forward(X, np.ones((2, 4))), r"takes state of shape \(2, 8\)"),
        (
            lambda: Recurrent(6, 4, **F8).forward(X[:, :0]),
            r"at least one position and got x of shape \(2, 0, 6",
        ),
        (lambda: HEADS(X[:, :0]), "attention needs at least one key"),
        (lambda: HEADS(X, mask=np.ones((2, 1, 3), bool)), r"without an axis of heads: write \(B, 1, T, S\)"),
        (lambda: HEADS(X, query_mask=np.ones((2, 3, 1), bool)), r"of heads: write \(B, 1, T, 1\)"),
        (lambda: attention(*[np.ones((1, 0, 2))] * 3), r"k has shape \(1, 0, 2\), and attention needs at le"),
    ],
)
def test_other_inputs_that_do_not_fit(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()


@pytest.mark.parametrize("rng", [0, np.int64(0), "0", np.random.RandomState(0)])
@pytest.mark.parametrize("layer", [Linear, Embedding, FeedForward, Recurrent, MultiHeadAttention])
def test_a_seed_in_place_of_a_generator(layer, rng):
    """It is refused, since parts of equal shape would begin with equal weights."""
    with pytest.raises(UserError, match=r"^rng is .*: give a generator, such as np.random.default_rng\(0\)$"):
        layer(4, 2, rng=rng)
