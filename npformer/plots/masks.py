"""Pictures of `npformer masks`: masks side by side, and a map of the outputs that change with a token."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from npformer.errors import UserError
from npformer.plots.heat_maps import MASKED, Scale, heat_row, make_heat_map, mask_scale
from npformer.plots.layout import mask_array
from npformer.plots.palette import COLOURS, ink_on
from npformer.plots.style import SMALL, drawing

MOST_NUMBERED = 10  # the largest number of tokens with which the cells contain numbers

# the kinds of cells of the leak map; each has its number and its colour
FORBIDDEN, UNUSED, MOVES, LEAKS = range(4)
COLOUR_OF = {FORBIDDEN: COLOURS["masked"], UNUSED: "#f4f6f8", MOVES: "#6baed6", LEAKS: COLOURS["highlight"]}
MEANING = {
    MOVES: "allowed: the output changes",
    UNUSED: "allowed, but nothing changes",
    FORBIDDEN: "forbidden: nothing changes",
    LEAKS: "leak: forbidden, and it changes",
}


def mask_panels(masks: Mapping[str, ArrayLike], queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Draw masks side by side, followed by their logical AND.

    Args:
        masks: Bool masks by their names, each (T, S) or broadcastable to it.
        queries: T row labels.
        keys: S column labels.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit.
    """
    if not masks:
        raise UserError("there are no masks: give at least one")
    with drawing(queries, keys, list(masks)):
        panels = {name: mask_array(mask, (len(queries), len(keys))) for name, mask in masks.items()}
        if len(panels) > 1:
            panels["together"] = np.logical_and.reduce(list(panels.values()))
        heats = [make_heat_map(mask, queries, keys, name="mask") for mask in panels.values()]
        for name, heat in zip(panels, heats, strict=True):
            heat.scale, heat.title = mask_scale(), name
        heats[0].legend = (("#cfe1f2", "may attend"), MASKED)
        return heat_row(heats, bar=False)


def leak_map(moved: ArrayLike, allowed: ArrayLike, queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Draw which outputs change when a token changes: rows are outputs, columns are changed tokens.

    If there are at most 10 tokens, a cell contains the distance by which the output changed. In a cell
    without a number, the output did not change at all.

    Args:
        moved: The distances that npformer.checking.leaks.movement returns, (T, S).
        allowed: Bool, broadcastable to (T, S), True where the distance may be above 0.
        queries: T row labels.
        keys: S column labels.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit.
    """
    title = "Which outputs change when a token changes"
    with drawing(queries, keys, title):
        distances = make_heat_map(moved, queries, keys, name="moved").values
        may_change = mask_array(allowed, distances.shape)
        changed, unchanged = np.where(may_change, MOVES, LEAKS), np.where(may_change, UNUSED, FORBIDDEN)
        kind = np.where(distances > 0, changed, unchanged)
        heat = make_heat_map(kind, queries, keys, name="moved")
        heat.scale = Scale(ListedColormap([COLOUR_OF[i] for i in range(4)], "npformer_leaks"), 0.0, 3.0, "")
        heat.axis_labels = ("output", "changed token")
        heat.legend = tuple((COLOUR_OF[i], text) for i, text in MEANING.items() if (kind == i).any())
        figure = heat_row([heat], title, bar=False)
        if max(distances.shape) <= MOST_NUMBERED:
            for (row, column), distance in np.ndenumerate(distances):
                if distance > 0:
                    ink = ink_on(COLOUR_OF[int(heat.values[row, column])])
                    style: dict[str, Any] = {"size": SMALL, "color": ink, "ha": "center", "va": "center"}
                    style["label"] = "heat map"
                    figure.axes[0].text(column, row, two_digits(distance), **style)
        return figure


def two_digits(distance: float) -> str:
    """Return a distance as a short text: .12, 1.3, 6e-5, ∞."""
    if not np.isfinite(distance):
        return "∞"
    text = f"{distance:.2g}" if 0.001 <= distance < 100 else f"{distance:.0e}".replace("e-0", "e-")
    return text.removeprefix("0") if text.startswith("0.") else text.replace("e+0", "e").replace("e+", "e")
