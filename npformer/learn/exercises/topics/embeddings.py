"""Chapters 2 and 3: embeddings and positional encodings."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.functional.positions import sinusoids
from npformer.learn.exercises.exercise import Functions, Gradients, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import Borrowed, layer_trial, output
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


def _vectors(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    table = rng.standard_normal((7, 3))
    return {
        "y": output(own.embedding(IDS, table)),
        "y with scale 1.7": output(own.embedding(IDS, table, 1.7)),
        "y with scale 1.7 and zero_id 0": output(own.embedding(IDS, table, 1.7, 0)),
        "y with zero_id 4": output(own.embedding(IDS, table, 1.0, 4)),
        "y of one row of ids": output(own.embedding(IDS[0], table, 0.5, 2)),
        "y of a float32 table": output(own.embedding(IDS, table.astype(np.float32), 1.7, 0)),
    }


def _tied(bias: bool) -> Any:
    return lambda rng: TiedProjection(Parameter(rng.standard_normal((7, 4))), bias=bias, dtype=np.float64)


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


EMBEDDINGS = exercises(
    r'''
=== 2 embedding: a vector for each token, forward
import numpy as np


def embedding(ids, table, scale=1.0, zero_id=None):
    """Return y = scale · table[ids], where y is 0 at the positions with ids == zero_id.

    ids      integers (..., T)
    table    (V, D), one row for each token
    scale    a number; the paper uses sqrt(D)
    zero_id  the id whose vector is replaced by 0, usually that of padding, or None
    Returns y (..., T, D) with the dtype of the table.
    """
    # solution
    y = scale * table[ids]
    if zero_id is not None:
        y = np.where((ids == zero_id)[..., None], 0, y)
    return y
--- table[ids] selects a row of the table for each id. Its shape is that of ids, with an axis more.
--- ids == zero_id is True at the positions that must be 0. It lacks the last axis of y, and [..., None] adds
    an axis of length 1.
--- Compute y = scale * table[ids]. If zero_id is not None, apply np.where(..., 0, y).

=== 2 embedding-backward: the gradient of an embedding table
import numpy as np


def embedding_backward(dy, cache):
    """Return the gradient of y = scale · table[ids], where y is 0 at the positions with ids == zero_id.

    dy     the gradient of y, of shape (B, T, D)
    cache  .ids (B, T), .table (V, D), .scale, and .zero_id (an id, or None)
    Returns dtable (V, D). If a token occurs several times, its gradients are added.
    """
    ids, table, scale, zero_id = cache
    # begin with dtable = np.zeros(table.shape, dy.dtype)
    # solution
    dtable = np.zeros(table.shape, dy.dtype)
    if zero_id is not None:
        dy = np.where((ids == zero_id)[..., None], 0, dy)
    np.add.at(dtable, ids, scale * dy)
    return dtable
--- In the forward pass, each position reads one row of the table. In the backward pass, it adds its dy to
    this row. This operation is called scatter-add.
--- dtable[ids] += dy adds only once if an id occurs several times. np.add.at adds each time.
--- First set dy to 0 at the positions of zero_id, without changing the argument dy. Then call
    np.add.at(dtable, ids, scale * dy).

=== 2 tied-backward: an output layer with tied weights
from npformer import functional as F


def tied_backward(layer, dy, cache):
    """Compute the backward pass of y = x weightᵀ + bias. The embedding uses the same weight (V, D).

    layer  .weight and .bias, each with .value and .grad; bias may be None
    dy     the gradient of y, of shape (..., V)
    cache  the cache of the linear layer y = x w + bias with w = weightᵀ: F.linear_backward(dy, cache)
           returns (dx, dw, dbias)
    Adds to layer.weight.grad and layer.bias.grad, and returns dx.
    """
    # solution
    dx, dw, dbias = F.linear_backward(dy, cache)
    layer.weight.grad += dw.T
    if layer.bias is not None:
        layer.bias.grad += dbias
    return dx
--- F.linear_backward computes the gradients. You only have to add each of them to the right array.
--- dw is the gradient of weightᵀ and has the shape (D, V). Transpose it.
--- layer.weight.grad += dw.T. Use += and not =, because the embedding adds to the same gradient.

=== 2 linear-layer-backward: the backward pass of a layer with parameters
from npformer import functional as F


def linear_layer_backward(layer, dy, cache):
    """Compute the backward pass of the layer y = x weight + bias.

    layer  .weight and .bias, each with .value and .grad; bias may be None
    dy     the gradient of y, of shape (..., O)
    cache  F.linear_backward(dy, cache) returns (dx, dweight, dbias)
    Adds to layer.weight.grad and layer.bias.grad, and returns dx. A model may use the layer several
    times before an optimizer step. Then the gradients of all uses must be added.
    """
    # solution
    dx, dweight, dbias = F.linear_backward(dy, cache)
    layer.weight.grad += dweight
    if layer.bias is not None:
        layer.bias.grad += dbias
    return dx
--- F.linear_backward returns three gradients. What happens to each of them?
--- Two of them are added to .grad, and one is returned. Remember that layer.bias may be None.
--- layer.weight.grad += dweight, and the same for the bias if there is one. Return dx.

=== 3 sinusoids: the paper's table of positional encodings
import numpy as np


def sinusoids(length, d_model):
    """Return the table PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(pos / 10000^(2i/D)).

    D is d_model, an even number. Returns an array (length, D) of float64 with one row for each position.
    """
    # solution
    position = np.arange(length)[:, None]
    i = np.arange(d_model // 2)
    angle = position / 10000 ** (2 * i / d_model)
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle)
    return table
--- There are D/2 frequencies. Each of them is used in two adjacent columns.
--- Divide the positions, of shape (T, 1), by 10000 to the power of the exponents 2i/D, of shape (D/2,).
    Broadcasting gives the angles (T, D/2).
--- table[:, 0::2] = np.sin(angle) and table[:, 1::2] = np.cos(angle).

=== 3 positions-backward: learned positions, shared by all sentences

def positions_backward(layer, dy, cache):
    """Compute the backward pass of y = x + weight[start : start + T].

    Every sentence of the batch uses the same rows of the weight.
    layer  .weight.grad (max_length, D): add the gradient to it
    dy     the gradient of y, of shape (B, T, D)
    cache  the pair (start, T)
    Returns nothing, because positions are whole numbers and have no gradient.
    """
    start, length = cache
    # solution
    layer.weight.grad[start : start + length] += dy.sum(0)
--- Each row of the table was added to one position of every sentence in the batch.
--- So the gradient of the row is the sum of dy over the batch axis.
--- layer.weight.grad[start : start + length] += dy.sum(0), which has the shape (T, D).
''',
    {
        "embedding": Task(F.embedding, Values("", _vectors, numbers=((1.7, "scale"),))),
        "embedding-backward": Task(
            F.embedding_backward,
            _embedding_trial(""),
            _embedding_trial("scale 1.7", scale=1.7),
            _embedding_trial("scale 1.7, padding zero", scale=1.7, zero_id=0),
            _embedding_trial("zero_id 4", zero_id=4),
        ),
        "tied-backward": Task(
            TiedProjection.backward,
            layer_trial("", _tied(bias=True), "tied_backward", (2, 3, 4)),
            layer_trial("no bias", _tied(bias=False), "tied_backward", (2, 3, 4)),
        ),
        "linear-layer-backward": Task(
            Linear.backward,
            layer_trial(
                "",
                lambda rng: Linear(4, 3, rng=rng, dtype=np.float64),
                "linear_layer_backward",
                (2, 5, 4),
            ),
            layer_trial(
                "no bias",
                lambda rng: Linear(4, 3, bias=False, rng=rng, dtype=np.float64),
                "linear_layer_backward",
                (2, 4),
            ),
        ),
        "sinusoids": Task(
            sinusoids, Values("", _tables, numbers=((10000, "10000"),), hidden=hidden_inputs.tables)
        ),
        "positions-backward": Task(LearnedPositions.backward, _positions_trial()),
    },
)
