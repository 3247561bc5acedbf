"""The pictures of the mask lab: masks beside each other, and which outputs move when a token changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from npformer.plots.heat import MASKED, HeatMap, Scale, make, mask_scale
from npformer.plots.heatmap import heat_row
from npformer.plots.layout import mask_array
from npformer.plots.palette import COLOURS, ink_on
from npformer.plots.style import SMALL, drawing

MOST_NUMBERED = 10  # words, beyond which cells carry no numbers

# what a cell of the leak map says; the number chooses the colour
FORBIDDEN, UNUSED, MOVES, LEAKS = range(4)
COLOUR_OF = {FORBIDDEN: COLOURS["masked"], UNUSED: "#f4f6f8", MOVES: "#6baed6", LEAKS: COLOURS["highlight"]}
MEANING = {
    MOVES: "allowed: the output moves",
    UNUSED: "allowed, but nothing moves",
    FORBIDDEN: "forbidden: not a bit moves",
    LEAKS: "leak: forbidden, and it moves",
}


def mask_panels(masks: Mapping[str, np.ndarray], queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Masks by their names, side by side, and then what all of them together let pass.

    Shapes: masks bool (T, S). Errors: UserError for other shapes, or where the words do not fit.
    """
    with drawing(queries, keys, list(masks)):
        panels = {name: mask_array(mask, (len(queries), len(keys))) for name, mask in masks.items()}
        if len(panels) > 1:
            panels["together"] = np.logical_and.reduce(list(panels.values()))
        heats = [make(mask, queries, keys, None, name="mask") for mask in panels.values()]
        for name, heat in zip(panels, heats, strict=True):
            heat.scale, heat.title = mask_scale(), name
        heats[0].legend = (("#cfe1f2", "may look"), MASKED)
        return heat_row(heats, bar=False)


def leak_map(moved, allowed, queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Which output moves when which token changes: rows are outputs, columns the tokens that are changed.

    Numbers say how far, where there are few words; a cell without one did not move by a single bit.
    moved is what npformer.leaks.movement returns; allowed says where it may be above 0.
    Shapes: moved (T, S), allowed bool broadcastable to it.
    Errors: UserError for other shapes, or where the words do not fit.
    """
    title = "Which outputs move when a token changes"
    with drawing(queries, keys, title):
        distances = make(moved, queries, keys, None, name="moved").values
        may = mask_array(allowed, distances.shape)
        kind = np.where(distances > 0, np.where(may, MOVES, LEAKS), np.where(may, UNUSED, FORBIDDEN))
        heat = make(kind, queries, keys, None, name="moved")
        heat.scale = Scale(ListedColormap([COLOUR_OF[i] for i in range(4)], "npformer_leaks"), 0.0, 3.0, "")
        heat.axis_labels = ("output", "changed token")
        heat.legend = tuple((COLOUR_OF[i], text) for i, text in MEANING.items() if (kind == i).any())
        figure = heat_row([heat], title, bar=False)
        if max(distances.shape) <= MOST_NUMBERED:
            _write_distances(figure, heat, distances)
        return figure


def _write_distances(figure: Figure, heat: HeatMap, distances: np.ndarray) -> None:
    """The distance in every cell that moved."""
    for (row, column), distance in np.ndenumerate(distances):
        if distance > 0:
            ink = ink_on(COLOUR_OF[int(heat.values[row, column])])
            style: dict[str, Any] = {"size": SMALL, "color": ink, "ha": "center", "va": "center"}
            figure.axes[0].text(column, row, two_digits(distance), **style)


def two_digits(distance: float) -> str:
    """A distance as short as it can be read: .12, 1.3, 6e-5, ∞."""
    if not np.isfinite(distance):
        return "∞"
    text = f"{distance:.2g}" if 0.001 <= distance < 100 else f"{distance:.0e}".replace("e-0", "e-")
    return text.removeprefix("0") if text.startswith("0.") else text.replace("e+0", "e").replace("e+", "e")
