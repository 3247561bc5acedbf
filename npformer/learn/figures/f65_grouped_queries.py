"""F65: the heads of queries that share a head of keys and values."""

from collections.abc import Sequence

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError, quantity
from npformer.learn.figures.registry import Drawing, figure
from npformer.nn import MultiHeadAttention
from npformer.plots.board import Board
from npformer.plots.boxes import Box
from npformer.plots.style import LABEL, drawing

HEAD, STEP = 0.36, 0.46  # the width of a head, and the distance of two
D_HEAD = 4


@figure("F65", "Query heads that share keys and values", "course", "FW")
def grouped_queries(*, n_heads: int = 8, key_heads: Sequence[int] = (8, 2, 1)) -> Drawing:
    """Draw which query heads use which head of keys and values.

    The connections are measured: a head of keys and values is changed, and the query heads whose outputs
    change are connected with it.

    Args:
        n_heads: The number of query heads.
        key_heads: The number of heads of keys and values of each layer.
    Raises:
        UserError: If no layer is given, or a number of heads is impossible.
    """
    if not key_heads:
        raise UserError("key_heads is empty: give at least one number of heads")
    used = [uses(n_heads, number) for number in key_heads]
    with drawing():
        board = Board()
        for row, connected in enumerate(used):
            _layer(board, connected, -1.75 * row)
        picture = board.cut()
    shares = ", ".join(
        f"{quantity(each.shape[1], 'head')} of keys and values, each used by {quantity(share, 'query head')}"
        for each in used
        for share in sorted({int(number) for number in each.sum(0)})
    )
    return Drawing(
        picture,
        f"Query heads (above) and heads of keys and values (below) of layers with {n_heads} query heads: "
        f"{shares.replace('each used', 'used')}. Each query head still has its own attention weights, but "
        "fewer keys and values must be stored in a KV cache. Each line was found by a change of the values "
        "of a head: the output of the query head changed too.",
    )


def uses(n_heads: int, n_kv_heads: int) -> Array:
    """Return which query heads depend on which head of keys and values, bool of shape (H, G)."""
    rng = np.random.default_rng(0)
    layer = MultiHeadAttention(
        n_heads * D_HEAD, n_heads, n_kv_heads=n_kv_heads, output=False, rng=rng, dtype=np.float64
    )  # without the output projection, the output is the outputs of the heads
    x = rng.standard_normal((1, 3, n_heads * D_HEAD))  # (B, T, D)
    before = layer.forward(x)[0]
    found = np.zeros((n_heads, n_kv_heads), bool)
    for head in range(n_kv_heads):
        columns = layer.value.weight.value[:, head * D_HEAD : (head + 1) * D_HEAD]
        columns *= 2
        changed = layer.forward(x)[0] != before  # (1, T, D)
        columns /= 2
        found[:, head] = changed.reshape(-1, n_heads, D_HEAD).any((0, 2))
    return found


def _layer(board: Board, connected: Array, y: float) -> None:
    """Draw the heads of one layer with its lower row at height y. Shapes: connected (H, G)."""
    n_heads, groups = connected.shape
    xs = STEP * np.arange(n_heads)
    below = [_head(board, f"{g}", xs[connected[:, g]].mean(), y, "k") for g in range(groups)]
    for h, x in enumerate(xs):
        above = _head(board, f"{h}", x, y + 0.85, "q")
        for g in np.flatnonzero(connected[h]):
            board.arrow(below[g].top, above.bottom, head=False)
    board.text(xs[0] - 0.35, y + 0.85, "queries", size=LABEL, ha="right")
    board.text(xs[0] - 0.35, y, "keys, values", size=LABEL, ha="right")


def _head(board: Board, label: str, x: float, y: float, colour: str) -> Box:
    return board.box(label, x, y, HEAD, HEAD, colour=colour)
