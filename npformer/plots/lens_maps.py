"""Pictures of what happens between the layers: predictions of every layer, and effects of patches."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from npformer.errors import UserError
from npformer.plots.heat_maps import (
    HeatMap,
    Room,
    Scale,
    draw_at,
    heat_row,
    make_heat_map,
    refuse_not_finite,
    room,
    signed_scale,
)
from npformer.plots.layout import MAX_SIDE, PAD, array, titled_figure
from npformer.plots.palette import weight_map
from npformer.plots.style import drawing, visible

LONGEST = 12  # letters of a word in a cell


def prediction_grid(
    probabilities: ArrayLike,
    predictions: Sequence[Sequence[str]],
    rows: Sequence[str],
    tokens: Sequence[str],
    *,
    title: str | None = None,
) -> Figure:
    """Draw the most probable token after every layer, on the colour of its probability: the logit lens.

    The last layer is at the top, since a model is drawn from the bottom to the top.

    Args:
        probabilities: The probabilities, (L, T).
        predictions: L rows of T tokens.
        rows: L names, such as "layer 0".
        tokens: The T tokens that the model reads.
        title: A title above the picture.

    Raises:
        UserError: If a shape is wrong, or the words do not fit in a picture.
    """
    with drawing(*predictions, rows, tokens, title):
        values = array(probabilities, "probabilities", 2)  # (L, T)
        refuse_not_finite(values, "probabilities")
        heat = make_heat_map(values[::-1], list(rows)[::-1], tokens, name="probabilities")
        if [len(row) for row in predictions] != [values.shape[1]] * len(values):
            raise UserError(f"predictions must have the shape {values.shape}, that of probabilities")
        heat.written = [_cut(visible(word)) for row in reversed(predictions) for word in row]
        heat.numbers, heat.stretch = True, (0.5, 1.5)
        heat.scale = Scale(weight_map(), 0.0, 1.0, "probability")
        heat.axis_labels = ("after", "token read")
        return heat_row([heat], title)


def patch_grid(
    effects: Sequence[Sequence[tuple[str, ArrayLike, Sequence[str], Sequence[str]]]],
    *,
    title: str | None = None,
) -> Figure:
    """Draw the effects of patches as heat maps in rows, all with the same colours, last layer on top.

    Args:
        effects: For each row of heat maps, and for each map in it, its title, the effects (N, M), the names
            of its N rows and of its M columns.
        title: A title above the picture.

    Raises:
        UserError: If a shape is wrong, a number is not finite, or the maps do not fit in a picture.
    """
    every = [each for row in effects for each in row]
    if not effects or not all(effects):
        raise UserError("there are no effects: give at least one heat map in each row")
    with drawing(title, *((name, rows, columns) for name, _, rows, columns in every)):
        arrays = [array(values, "effects", 2) for _, values, _, _ in every]
        for values in arrays:
            refuse_not_finite(values, "effects")
        largest = np.concatenate([values.ravel() for values in arrays])
        lines = [[_effect_map(*each, signed_scale(largest, "effect")) for each in row] for row in effects]
        cell = min(heat.cell for line in lines for heat in line)
        least = max(heat.least_cell for line in lines for heat in line)
        rooms, width = _rooms(lines, cell)
        while width + 2 * PAD > MAX_SIDE and cell > least:
            cell = max(least, 0.97 * cell)
            rooms, width = _rooms(lines, cell)
        heights = [max(r.total[1] for r in line) for line in rooms]
        height = sum(heights) + PAD * (len(lines) - 1)
        what = f"a heat map of {len(every[0][2])} × {len(every[0][3])} words"
        figure, left = titled_figure(width, height, title, what=what)
        top = PAD + height
        for line, own, high in zip(lines, rooms, heights, strict=True):
            x = left
            for heat, r in zip(line, own, strict=True):
                draw_at(figure, heat, x, top, cell=cell, bar=heat is line[-1])
                x += r.total[0] + PAD
            top -= high + PAD
        return figure


def _rooms(lines: list[list[HeatMap]], cell: float) -> tuple[list[list[Room]], float]:
    """Return the room of each heat map with cells of a size, a colour bar after each row, and the width."""
    rooms = [[room(heat, cell, bar=heat is line[-1]) for heat in line] for line in lines]
    return rooms, max(sum(r.total[0] for r in line) + PAD * (len(line) - 1) for line in rooms)


def _effect_map(
    name: str, values: ArrayLike, rows: Sequence[str], columns: Sequence[str], scale: Scale
) -> HeatMap:
    """Return the heat map of the effects of a stack, last layer on top."""
    heat = make_heat_map(array(values, "effects", 2)[::-1], list(rows)[::-1], columns, name="scores")
    heat.title, heat.axis_labels, heat.scale = name, ("", ""), scale
    return heat


def _cut(word: str) -> str:
    """Return a word that fits in a cell."""
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"
