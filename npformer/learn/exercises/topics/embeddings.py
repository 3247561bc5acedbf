"""Lessons 2 and 3: embeddings and positions."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.functional.positions import sinusoids
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.topics.tools import Borrowed, layer_trial
from npformer.nn import Linear, TiedProjection
from npformer.nn.module import Parameter
from npformer.nn.positions import LearnedPositions

IDS = np.array([[4, 1, 4, 2, 0], [5, 4, 1, 0, 0]])


def _embedding_trial(label: str, **settings: Any) -> Gradients:
    """Return a gradient check in which the table is the tensor and the ids are fixed."""

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        return (
            (lambda ids, table: F.embedding(ids, table, **settings), own.embedding_backward),
            IDS,
            (rng.standard_normal((7, 3))),
        )

    return Gradients(label, make)


def _tied(rng: np.random.Generator) -> Any:
    return TiedProjection(Parameter(rng.standard_normal((7, 4))), bias=True, dtype=np.float64)


class _PositionsOfBatch:
    """A layer that returns x plus its positions, so that it has an input."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.positions = LearnedPositions(9, 4, rng=rng, dtype=np.float64)

    def named_parameters(self) -> Any:
        return self.positions.named_parameters()

    def forward(self, x: Array) -> tuple[Any, Any]:
        p, cache = self.positions.forward(x.shape[1], 2)
        return x + p, cache


def _positions_trial() -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        layer = _PositionsOfBatch(rng)

        def backward(_: int, dy: Array, cache: Any) -> Any:
            own.positions_backward(layer.positions, dy, cache)
            return dy

        return Borrowed(layer, backward), rng.standard_normal((3, 5, 4))

    return Gradients("", make)


def _tables(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {"table": own.sinusoids(9, 6), "a table of width 2": own.sinusoids(4, 2)}


EMBEDDINGS = (
    Exercise(
        "embedding-backward",
        2,
        "the gradient of a table of word vectors",
        '''
import numpy as np


def embedding_backward(dy, cache):
    """The gradient of y = scale · table[ids], where y is 0 wherever ids == zero_id.

    dy     the gradient of y, shape (B, T, D)
    cache  .ids (B, T), .table (V, D), .scale, and .zero_id (an id, or None)
    Returns dtable (V, D). A word that occurs several times receives the sum of its gradients.
    """
    ids, table, scale, zero_id = cache
    # dtable = np.zeros(table.shape, dy.dtype), then ...
''',
        (
            _embedding_trial(""),
            _embedding_trial("scale 1.7", scale=1.7),
            _embedding_trial("scale 1.7, padding zero", scale=1.7, zero_id=0),
        ),
        (
            "Each position read one row of the table, and adds its dy to that row: a scatter-add.",
            "dtable[ids] += dy keeps only one of several equal ids. np.add.at adds every one.",
            "np.add.at(dtable, ids as one axis, scale · dy as rows), after dy was set to 0 at zero_id.",
        ),
        {"embedding_backward": F.embedding_backward},
    ),
    Exercise(
        "tied-backward",
        2,
        "the output layer that shares the word vectors",
        '''
from npformer.functional import linear_backward


def tied_backward(layer, dy, cache):
    """The backward pass of y = x weightᵀ + bias, whose weight (V, D) is the embedding's as well.

    layer  .weight and .bias, each with .value and .grad; bias may be None
    dy     the gradient of y, shape (..., V)
    cache  of the linear map y = x w + bias with w = weightᵀ: linear_backward(dy, cache) gives
           (dx, dw, dbias)
    Adds to layer.weight.grad and layer.bias.grad, and returns dx.
    """
''',
        (layer_trial("", _tied, "tied_backward", (2, 3, 4)),),
        (
            "linear_backward does the work; what is left is where its gradients go.",
            "Its dw belongs to weightᵀ, so it has the shape (D, V): turn it round.",
            "layer.weight.grad += dw.T: += and not =, since the embedding adds to the same gradient.",
        ),
        {"tied_backward": TiedProjection.backward},
    ),
    Exercise(
        "linear-layer-backward",
        2,
        "a layer with parameters: gradients add up",
        '''
from npformer.functional import linear_backward


def linear_layer_backward(layer, dy, cache):
    """The backward pass of the layer y = x weight + bias.

    layer  .weight and .bias, each with .value and .grad; bias may be None
    cache  what linear_backward(dy, cache) takes to give (dx, dweight, dbias)
    Adds to layer.weight.grad and layer.bias.grad, and returns dx. A layer may be used several times
    before its gradients are, so they must add up.
    """
''',
        (
            layer_trial(
                "", lambda rng: Linear(4, 3, rng=rng, dtype=np.float64), "linear_layer_backward", (2, 5, 4)
            ),
            layer_trial(
                "no bias",
                lambda rng: Linear(4, 3, bias=False, rng=rng, dtype=np.float64),
                "linear_layer_backward",
                (2, 4),
            ),
        ),
        (
            "One call of linear_backward, then three places for three gradients.",
            "Two are added to .grad, one is returned. Mind the layer without a bias.",
            "layer.weight.grad += dweight; the same for the bias if there is one; return dx.",
        ),
        {"linear_layer_backward": Linear.backward},
    ),
    Exercise(
        "sinusoids",
        3,
        "the paper's table of positions",
        '''
import numpy as np


def sinusoids(length, d_model):
    """PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos of the same. D = d_model, even.

    Returns an array (length, D) of float64: a row for each position, sines and cosines in turn.
    """
''',
        (Values("", _tables, numbers=((10000, "10000"),)),),
        (
            "There are D/2 frequencies; each serves two neighbouring columns.",
            "With position (T, 1) and a row of exponents 2i/D (D/2,), broadcasting gives angles (T, D/2).",
            "table[:, 0::2] = np.sin(angle) and table[:, 1::2] = np.cos(angle).",
        ),
        {"sinusoids": sinusoids},
    ),
    Exercise(
        "positions-backward",
        3,
        "learned positions, shared by a batch",
        '''

def positions_backward(layer, dy, cache):
    """The backward pass of y = x + weight[start : start + T], the same rows for every sentence.

    layer  .weight.grad (max_length, D), to which you add
    dy     the gradient of y, shape (B, T, D)
    cache  the pair (start, T)
    Returns nothing: a position is a number, not an array.
    """
    start, length = cache
''',
        (_positions_trial(),),
        (
            "A row of the table reached one position of every sentence in the batch.",
            "So its gradient is the sum of dy over the batch axis.",
            "layer.weight.grad[start : start + length] += that sum, of shape (T, D).",
        ),
        {"positions_backward": LearnedPositions.backward},
    ),
)
