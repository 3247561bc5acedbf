"""Heat maps of attention: rows are queries and columns are keys, always."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from npformer.plots.heat import (
    BAR,
    MASKED,
    HeatMap,
    Room,
    bar_room,
    colour_bar,
    draw_at,
    draw_on,
    fit,
    make,
    mask_scale,
    refuse_nan,
    room,
    signed_scale,
)
from npformer.plots.layout import (
    MAX_SIDE,
    PAD,
    axes_at,
    mask_array,
    new_figure,
    put_title,
    root,
    size_of,
    title_room,
)
from npformer.plots.style import TEXT, drawing, wrapped

Words = Sequence[str] | None


def attention_map(
    weights,
    queries: Words,
    keys: Words,
    *,
    mask=None,
    numbers: bool = False,
    largest: float | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """How much each query looks at each key, as a heat map: dark is much, and masked cells are dark grey.

    numbers writes the weights in the cells. largest is the weight of the darkest colour, else the largest
    one shown. None in place of words numbers them.
    Shapes: weights (T, S), mask bool broadcastable to it, True where a query may look.
    Errors: UserError for other shapes, or where the words do not fit with letters of 8 points.
    """
    with drawing(queries, keys, title):
        heat = make(weights, queries, keys, mask)
        if largest is not None:
            heat.scale = heat.scale._replace(high=largest)
        return _finish(replace(heat, numbers=numbers, legend=_legend(heat)), ax, title)


def score_map(
    scores,
    queries: Words,
    keys: Words,
    *,
    mask=None,
    numbers: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Scores before the softmax: blue above 0, orange below, and masked or -inf cells dark grey.

    Shapes: scores (T, S), mask bool broadcastable to it, True where a query may look.
    Errors: UserError for other shapes, or where the words do not fit with letters of 8 points.
    """
    with drawing(queries, keys, title):
        heat = make(scores, queries, keys, mask, name="scores")
        heat.scale = signed_scale(heat.values[heat.mask], "score")
        return _finish(replace(heat, numbers=numbers, legend=_legend(heat)), ax, title)


def mask_map(
    mask, queries: Words, keys: Words, *, ax: Axes | None = None, title: str | None = None
) -> Figure:
    """A mask: light where a query may look, dark grey where it may not.

    Shapes: mask bool (T, S), or broadcastable to the words given.
    Errors: UserError for other shapes, or where the words do not fit with letters of 8 points.
    """
    with drawing(queries, keys, title):
        rows, columns = np.shape(mask)[-2:] if np.ndim(mask) > 1 else (1, np.size(mask))
        shape = (rows if queries is None else len(queries), columns if keys is None else len(keys))
        heat = make(mask_array(mask, shape), queries, keys, None, name="mask")
        heat.scale = mask_scale()
        heat.legend = (("#cfe1f2", "may look"), MASKED)
        return _finish(heat, ax, title, bar=False)


def softmax_panels(
    scores,
    weights,
    queries: Words,
    keys: Words,
    *,
    mask=None,
    numbers: bool = False,
    title: str | None = None,
) -> Figure:
    """Scores before the softmax and weights after it, side by side.

    Shapes: scores and weights (T, S), mask bool broadcastable to them, True where a query may look.
    Errors: UserError for other shapes, or where the words do not fit with letters of 8 points.
    """
    with drawing(queries, keys, title):
        before = make(scores, queries, keys, mask, name="scores")
        after = make(weights, queries, keys, mask)
        before.scale = signed_scale(before.values[before.mask], "score")
        before.title, after.title = "before the softmax", "after the softmax"
        for heat in (before, after):
            heat.numbers, heat.legend = numbers, _legend(heat)
        return heat_row([before, after], title)


def value_map(
    values,
    *,
    xlabel: str,
    ylabel: str,
    label: str = "value",
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Signed numbers as colours over two numbered axes, such as position vectors: blue above 0, orange below.

    Shapes: values (N, M), row 0 at the top. Errors: UserError for other shapes, or numbers not finite.
    """
    with drawing(xlabel, ylabel, label, title):
        heat = make(values, None, None, None, name="values")
        refuse_nan(heat.values, np.ones_like(heat.mask), "values")
        heat.scale = signed_scale(heat.values, label)
        heat.axis_labels = (ylabel, xlabel)
        high = float(np.clip(heat.values.shape[0] * 0.12, 1.4, 5))
        place = None
        if ax is None:
            bar = PAD + bar_room(heat.scale, high)
            title = wrapped(title, 7 + bar)
            _, up = title_room(title)
            figure = new_figure(8 + bar, high + 0.6 + 2 * PAD + up)
            ax = axes_at(figure, 0.85, PAD, 7, high)
            place = axes_at(figure, 0.85 + 7 + PAD, PAD, BAR, high)
            if title:
                put_title(figure, title)
        elif title:
            ax.set_title(title)
        image = draw_on(ax, heat, Room(*size_of(ax), 0, 0, 0, 0, TEXT, 0))
        ax.set_aspect("auto")
        if place is not None:
            colour_bar(root(ax), place, image, heat.scale, high)
        return root(ax)


def heat_row(heats: Sequence[HeatMap], title: str | None = None, *, bar: bool = True) -> Figure:
    """Several heat maps side by side, with cells of one size.

    Errors: UserError where they do not fit.
    """
    cell = _row_cell(heats, bar)
    rooms = [room(heat, cell, bar=bar) for heat in heats]
    width = _row_width(rooms)
    title = wrapped(title, max(width, 2.5))
    title_width, title_height = title_room(title)
    rows, columns = heats[0].values.shape
    total = max(width, title_width) + 2 * PAD
    height = max(r.top for r in rooms) + max(r.height + r.below for r in rooms)
    figure = new_figure(total, height + title_height + 2 * PAD, f"a heat map of {rows} × {columns} words")
    left, top = (total - width) / 2, PAD + height
    for heat, r in zip(heats, rooms, strict=True):
        draw_at(figure, heat, left, top - max(q.top for q in rooms) + r.top, cell=cell, bar=bar)
        left += r.total[0] + 3 * PAD
    if title:
        put_title(figure, title)
    return figure


def _row_cell(heats, bar) -> float:
    """The side of the cells: as they would have it, smaller where the row is too wide for a figure."""
    least = max(heat.least_cell for heat in heats)
    cell = max(least, min(heat.cell for heat in heats))
    while cell > least and _row_width([room(heat, cell, bar=bar) for heat in heats]) + 2 * PAD > MAX_SIDE:
        cell = max(least, 0.97 * cell)
    return cell


def _row_width(rooms) -> float:
    return sum(r.total[0] for r in rooms) + 3 * PAD * (len(rooms) - 1)


def _finish(heat: HeatMap, ax: Axes | None, title: str | None, *, bar: bool = True) -> Figure:
    """Draw on the given axes, or on a figure of its own."""
    if ax is None:
        return heat_row([heat], title, bar=bar)
    heat.title = title
    draw_on(ax, heat, fit(ax, heat))
    return root(ax)


def _legend(heat: HeatMap):
    return () if heat.mask.all() else (MASKED,)
