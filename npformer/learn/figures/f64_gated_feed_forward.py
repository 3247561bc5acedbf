"""F64: a gated feed-forward network with its three matrices, computed for one sentence."""

from functools import partial
from typing import Any

import numpy as np

from npformer.learn.figures.datawhale_example import WordVectors, embedded
from npformer.learn.figures.registry import Drawing, figure
from npformer.nn import GatedFeedForward
from npformer.plots import Figure, Grid
from npformer.plots.board import Board
from npformer.plots.style import drawing

LARGER = 2.0  # a factor of the initial weights; without it the numbers would be near 0
NAMES = {"swiglu": "swish", "geglu": "gelu"}


@figure("F64", "A gated feed-forward network", "course", "FW", partial(embedded, sentence="the dog barks"))
def gated_feed_forward(vectors: WordVectors, *, d_ff: int = 5, activation: str = "swiglu") -> Drawing:
    """Draw y = (f(x Wg) * (x Wv)) W2 with the numbers of a forward pass.

    Args:
        vectors: The words and their vectors.
        d_ff: The width of the hidden layer.
        activation: "swiglu" or "geglu".
    Raises:
        UserError: If there is no such gated activation.
    """
    words, x, seed = vectors
    d_model = x.shape[1]
    layer = GatedFeedForward(
        d_model, d_ff, activation=activation, rng=np.random.default_rng(seed), dtype=x.dtype
    )
    for parameter in layer.parameters():
        parameter.value *= LARGER
    y, cache = layer.forward(x)  # (T, D)
    with drawing(words):
        picture = _picture(words, layer, y, cache, NAMES[activation])
    gated = cache.gated
    closed = int(np.abs(gated.activated).mean(0).argmin())
    return Drawing(
        picture,
        f"Two linear maps of x give the gate and the value, both of shape (T, {d_ff}). The activation "
        f"{NAMES[activation]} of the gate is multiplied with the value, number by number, and a third linear "
        f"map leads back to the width {d_model}. Where {NAMES[activation]} of the gate is near 0, the value "
        "hardly passes, as in column "
        f"{closed} with a mean of {np.abs(gated.activated).mean(0)[closed]:.2f}. All weights are random.",
    )


def _picture(words: list[str], layer: GatedFeedForward, y: np.ndarray, cache: Any, name: str) -> Figure:
    """Draw the gate, the value, their product, and the output, each in a row of its own."""
    gated, x = cache.gated, cache.gate.x
    weights = [part.weight.value for part in (layer.gate, layer.value, layer.outer)]
    gate, value, hidden = x @ weights[0], gated.value, gated.activated * gated.value  # (T, F)
    board = Board([x, *weights, gate, value, gated.activated, hidden, y])
    inputs = Grid(x, "$x$", "x", rows=words, numbers=True)

    def weight(matrix: np.ndarray, label: str, edge: str) -> Grid:
        return Grid(matrix, label, "weight", edge=edge, numbers=True)

    rows: list[list[Grid | str]] = [
        [inputs, "×", weight(weights[0], "$W_g$", "q"), "=", Grid(gate, "gate", "q", numbers=True)],
        [inputs, "×", weight(weights[1], "$W_v$", "v"), "=", Grid(value, "value", "v", numbers=True)],
        [
            Grid(gated.activated, f"{name}(gate)", "q", rows=words, numbers=True, shade=True),
            "⊙",
            Grid(value, "value", "v", numbers=True),
            "=",
            Grid(hidden, "$h$", "r", numbers=True),
        ],
        [
            Grid(hidden, "$h$", "r", rows=words, numbers=True),
            "×",
            weight(weights[2], "$W_2$", "z"),
            "=",
            Grid(y, "$y$", "z", numbers=True),
        ],
    ]
    step = max(len(matrix) for matrix in (x, *weights)) * 0.27 + 0.6
    for index, parts in enumerate(rows):
        board.product(parts, 0, -index * step)
    return board.cut()
