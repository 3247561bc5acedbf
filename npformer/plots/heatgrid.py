"""All heads of all layers at once: a grid of small heat maps, and one of them large."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from npformer.errors import UserError
from npformer.plots.heat import (
    AXIS,
    BAR,
    GAP,
    LEGEND,
    MASKED,
    HeatMap,
    band_of,
    bar_height,
    bar_room,
    colour_bar,
    draw_at,
    draw_on,
    key_rotation,
    legend,
    make,
    room,
    weight_scale,
)
from npformer.plots.layout import (
    MAX_SIDE,
    PAD,
    array,
    axes_at,
    mask_array,
    new_figure,
    put_title,
    title_room,
    word_line,
)
from npformer.plots.palette import COLOURS
from npformer.plots.style import SMALL, TEXT, drawing, line_height, text_size, widest, wrapped

NARROW = 0.08  # between panels
BESIDE = 1.2  # for the colour bar at the right, and for a title
LEAST, LARGEST = 0.5, 1.7  # longer side of a panel without words


def attention_grid(
    weights,
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
    *,
    mask=None,
    large: tuple[int, int] | None = None,
    title: str | None = None,
) -> Figure:
    """A small heat map for every layer and head, all with the same colours.

    The words stand beside the first column and over the first row where they fit, else nowhere.
    large, a pair (layer, head), draws that one with its words to the right of the grid.
    Shapes: weights (L, H, T, S), mask bool broadcastable to (T, S), True where a query may look.
    Errors: UserError for other shapes, or where the panels do not fit.
    """
    with drawing(queries, keys, title):
        values = array(weights, "weights", 4)
        layers, heads = values.shape[:2]
        heats = [[make(values[i, j], queries, keys, mask) for j in range(heads)] for i in range(layers)]
        shown = values[:, :, mask_array(mask, values.shape[2:])]
        for heat in (heat for row in heats for heat in row):
            heat.scale = weight_scale(shown)
        one = _large(heats, large)
        plan = _plan(heats, 0.0 if one is None else room(one, one.cell, bar=False).total[0] + 4 * PAD)
        return _draw(heats, plan, one, large, title)


class Plan(NamedTuple):
    """Where the panels stand, in inches."""

    cell: float
    words: bool
    left: float  # of the first panel: layer names, and words
    top: float  # head names, and words
    size: float  # of the words
    rotation: int


def _large(heats, large) -> HeatMap | None:
    if large is None:
        return None
    layer, head = large
    if not (0 <= layer < len(heats) and 0 <= head < len(heats[0])):
        raise UserError(
            f"large is {large}: there are {len(heats)} layers and {len(heats[0])} heads, from 0 on"
        )
    return replace(heats[layer][head], title=f"layer {layer}, head {head}")


def _plan(heats, beside) -> Plan:
    """The largest panels that fit in a figure, with words if they can be read then."""
    heat = heats[0][0]
    n_queries, n_keys = heat.values.shape
    left, top = text_size(f"layer {len(heats)}", TEXT)[0] + 2 * GAP, line_height(TEXT) + 2 * GAP
    name = (text_size(f"head {len(heats[0])}", TEXT)[0] + GAP - NARROW) / n_keys  # no narrower than its name
    if heat.queries is not None and heat.keys is not None:
        cell = max(word_line(SMALL), min(0.3, 1.5 / max(n_queries, n_keys)), name)
        rotation = key_rotation(heat.keys, cell, SMALL)
        if band_of(heat.keys, cell, SMALL, rotation)[1] > NARROW:  # they would reach into the next panel
            rotation = 90
        over = band_of(heat.keys, cell, SMALL, rotation)[0]
        beside_words = AXIS + widest(heat.queries, SMALL) + GAP
        plan = Plan(cell, True, left + beside_words, top + AXIS + over + GAP, SMALL, rotation)
        width, height = _grid_size(plan, heats)
        if width + beside + BESIDE <= MAX_SIDE and height + BESIDE <= MAX_SIDE:
            return plan
    plan = Plan(0.0, False, left + AXIS, top + AXIS, SMALL, 0)
    width = (MAX_SIDE - plan.left - BESIDE - beside) / len(heats[0]) - NARROW
    height = (MAX_SIDE - plan.top - BESIDE) / len(heats) - NARROW
    cell = min(width / n_keys, height / n_queries, max(LARGEST / max(n_keys, n_queries), name))
    if cell * max(n_keys, n_queries) < LEAST or cell < name:
        raise UserError(
            f"{len(heats)} × {len(heats[0])} heat maps of {n_queries} × {n_keys} do not fit in {MAX_SIDE} "
            "inches: draw fewer layers or heads"
        )
    return plan._replace(cell=cell)


def _panel(plan, heats):
    n_queries, n_keys = heats[0][0].values.shape
    return n_keys * plan.cell, n_queries * plan.cell


def _grid_size(plan, heats):
    """Width and height of the grid with its names, in inches."""
    width, height = _panel(plan, heats)
    return (
        plan.left + len(heats[0]) * (width + NARROW) - NARROW,
        plan.top + len(heats) * (height + NARROW) - NARROW,
    )


def _draw(heats, plan, one, large, title):
    width, height = _grid_size(plan, heats)
    bar_high = bar_height(height - plan.top)
    bar = PAD + max(bar_room(heats[0][0].scale, bar_high), 0.85)  # "masked" stands under it
    beside = room(one, one.cell, bar=False) if one else None
    total = width + bar + (beside.total[0] + 4 * PAD if beside else 0) + 2 * PAD
    title = wrapped(title, max(total, 2.5))
    title_width, title_height = title_room(title)
    high = max(height, bar_high + plan.top + LEGEND + PAD, beside.total[1] if beside else 0)
    figure = new_figure(max(total, title_width + 2 * PAD), high + title_height + 2 * PAD)
    top = PAD + high
    image = _panels(figure, heats, plan, top, large)
    beside_grid = axes_at(figure, 2 * PAD + width, top - plan.top - bar_high, BAR, bar_high)
    colour_bar(figure, beside_grid, image, heats[0][0].scale, bar_high)
    if not heats[0][0].mask.all():
        legend(beside_grid, (MASKED,), -PAD / bar_high)
    if one:
        draw_at(figure, one, PAD + width + bar + 4 * PAD, top, cell=one.cell, bar=False)
    if title:
        put_title(figure, title)
    return figure


def _panels(figure, heats, plan, top, large) -> AxesImage:
    """Draw the small heat maps; words stand only at the left and the upper edge."""
    width, height = _panel(plan, heats)
    r = room(heats[0][0], plan.cell, bar=False)._replace(size=plan.size, rotation=plan.rotation)
    for (i, j), heat in np.ndenumerate(np.array(heats, object)):
        left = PAD + plan.left + j * (width + NARROW)
        bottom = top - plan.top - i * (height + NARROW) - height
        ax = axes_at(figure, left, bottom, width, height)
        heat = replace(heat, queries=heat.queries if plan.words and j == 0 else None)
        heat = replace(heat, keys=heat.keys if plan.words and i == 0 else None)
        image = draw_on(ax, heat, r)
        if heat.queries is None:
            ax.set_yticks([])
        if heat.keys is None:
            ax.set_xticks([])
        if i or j:
            ax.set_xlabel("")
            ax.set_ylabel("")
        ax.spines[:].set(visible=True, color="#c8ccd0", linewidth=0.5)
        if large == (i, j):
            ax.spines[:].set(color=COLOURS["highlight"], linewidth=2.5)
    _names(figure, heats, plan, top)
    return image


def _names(figure, heats, plan, top):
    """ "layer 0", "layer 1" .. at the left and "head 0", "head 1" .. at the top."""
    width, height = _panel(plan, heats)
    across, up = figure.get_size_inches()
    for j in range(len(heats[0])):
        x = PAD + plan.left + j * (width + NARROW) + width / 2
        figure.text(x / across, (top - line_height(TEXT) / 2) / up, f"head {j}", ha="center", va="center")
    for i in range(len(heats)):
        y = top - plan.top - i * (height + NARROW) - height / 2
        figure.text(PAD / across, y / up, f"layer {i}", va="center")
