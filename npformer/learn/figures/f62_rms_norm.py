"""F62: RMS norm beside layer norm: what each of them removes from a vector."""

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional import layer_norm, rms_norm
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.style import drawing

APART = 0.75  # inches between two matrices, which is the room of an arrow


@figure("F62", "RMS norm and layer norm", "course", "FW")
def rms_norm_beside_layer_norm(
    *, d_model: int = 5, factor: float = 2.0, shift: float = 1.0, seed: int = 0
) -> Drawing:
    """Draw a vector, a multiple of it and the vector plus a constant, and both norms of the three.

    Args:
        d_model: The width of the vectors.
        factor: The factor of the second vector.
        shift: The constant that the third vector adds to each entry.
        seed: The seed of the random vector.
    Raises:
        UserError: If the width is below 2, or the factor is not above 0.
    """
    if d_model < 2 or factor <= 0:
        raise UserError(f"d_model is {d_model} and factor is {factor}: give at least 2, and a number above 0")
    x = np.random.default_rng(seed).standard_normal(d_model)  # (D,)
    rows = np.stack([x, factor * x, x + shift])  # (3, D)
    names = ["x", f"{factor:g} x", f"x + {shift:g}"]
    gain, bias = np.ones(d_model), np.zeros(d_model)
    by_rms, by_layer = rms_norm(rows, gain)[0], layer_norm(rows, gain, bias)[0]
    with drawing(names):
        board = Board([rows, by_rms, by_layer])
        inputs = Grid(rows, "", "x", rows=names, numbers=True, shade=True)
        width, height = board.size(inputs)
        left = board.grid(inputs, 0, height / 2)
        for name, values, y in (("RMS norm", by_rms, 0.85), ("layer norm", by_layer, -0.85)):
            result = Grid(values, name, "normalised", numbers=True, shade=True)
            placed = board.grid(result, width + APART, y + height / 2)
            board.arrow((left.right + 0.06, left.centre[1]), (placed.left - 0.06, placed.centre[1]))
        picture = board.cut()
    return Drawing(picture, _caption(rows, by_rms, by_layer, names))


def _caption(rows: Array, by_rms: Array, by_layer: Array, names: list[str]) -> str:
    """Return the caption. Its differences are computed. Shapes: all (3, D)."""
    moved = np.abs(by_rms[2] - by_rms[0]).max()
    most = max(np.abs(by_rms[1] - by_rms[0]).max(), np.abs(by_layer[1:] - by_layer[0]).max())
    return (
        f"The three rows are x, {names[1]} and {names[2]}, with the mean {rows[0].mean():.2f} of x. RMS norm "
        "divides each row by its root mean square, so a factor changes nothing, but a constant does: one "
        f"entry changes by {moved:.2f}. Layer norm also subtracts the mean, so its three rows are equal "
        f"(up to {most:.0e}, because of the small number under the root)."
    )
