"""Heat maps of one matrix, of several beside each other, and of all heads in a grid.

Rows are queries and columns are keys, in every picture.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from npformer.backend import to_numpy
from npformer.errors import UserError
from npformer.plots.layout import (
    LEAST_TITLE,
    MAX_SIDE,
    PAD,
    array,
    axes_at,
    entitle,
    mask_array,
    new_figure,
    root,
    size_of,
    titled_figure,
    word_line,
    words,
    write_at,
)
from npformer.plots.palette import COLOURS, ink_on, signed_map, weight_map
from npformer.plots.style import (
    DPI,
    LABEL,
    SMALL,
    TEXT,
    drawing,
    line_height,
    number,
    text_size,
    widest,
    wrapped,
)
from npformer.validation import is_number, require_index, short

GAP = 0.06  # between labels and cells, in inches
AXIS = line_height(LABEL) + GAP  # height of an axis label
LARGEST = 0.45  # the side of a cell where space allows, in inches
FINEST = 2 / DPI  # the side of the smallest cell in inches, two pixels of a saved PNG
TITLE_SPACE = 1.0  # the height that is kept for a title above a heat map as large as a figure, in inches
BAR, BAR_LEAST = 0.16, 1.0  # width and smallest height of a colour bar
LEGEND = 0.25  # height of a line of the legend, in inches
PANEL = 11.0  # the size of the title of one of several heat maps, in points
Words = Sequence[str] | None

MASKED = (COLOURS["masked"], "masked")  # an entry of the legend


class Scale(NamedTuple):
    """The mapping from numbers to colours."""

    colours: Colormap
    low: float
    high: float
    label: str


def weight_scale(values: np.ndarray) -> Scale:
    """Return a scale from 0 to the largest of the shown values. Shapes: values (...)."""
    return Scale(weight_map(), 0.0, float(values.max(initial=0)) or 1.0, "weight")


def signed_scale(values: np.ndarray, label: str) -> Scale:
    """Return a scale that is symmetric about 0, which is white. Shapes: values (...), all that are shown."""
    top = float(np.abs(values).max(initial=0)) or 1.0
    return Scale(signed_map(), -top, top, label)


def mask_scale() -> Scale:
    """Return a scale of two colours: may attend, and masked."""
    return Scale(ListedColormap([COLOURS["masked"], "#cfe1f2"], "npformer_mask"), 0.0, 1.0, "")


@dataclass
class HeatMap:
    """A matrix of numbers to be drawn as colours: rows are queries and columns are keys."""

    values: np.ndarray  # (T, S)
    mask: np.ndarray  # bool (T, S), False is dark grey
    queries: list[str] | None  # None: the rows are numbered
    keys: list[str] | None
    scale: Scale
    numbers: bool = False
    written: list[str] | None = None  # a word for each cell, row by row, in place of its number
    title: str | None = None
    axis_labels: tuple[str, str] = ("query", "key")
    legend: tuple[tuple[str, str], ...] = ()  # pairs (colour, text)
    every: tuple[int, int] = (1, 1)  # every n-th label is written, of rows and of columns
    stretch: tuple[float, float] = (1.0, 1.0)  # the height and the width of a cell, in cells

    @property
    def least_cell(self) -> float:
        """The smallest side of a cell, in inches, at which all text can be read."""
        unlabelled = self.queries is None and self.keys is None
        least = 0.02 if unlabelled else max(FINEST, word_line(SMALL) / max(self.every))
        if self.numbers:
            least = max(least, (widest(self.texts, SMALL) + 2 * GAP) / self.stretch[1])
        return least

    @property
    def cell(self) -> float:
        """The side of a cell, in inches, if the figure has no given size."""
        longest = float(max(self.values.shape))
        return max(self.least_cell, min(LARGEST, 6 / longest))

    @property
    def texts(self) -> list[str]:
        """The text in each cell that is not masked, row by row."""
        texts = map(number, self.values.flat) if self.written is None else self.written
        return [text for text, shown in zip(texts, self.mask.flat, strict=True) if shown]


class Room(NamedTuple):
    """The space, in inches, that a heat map with square cells and the text on each side take."""

    width: float  # the width of the cells together, without labels
    height: float
    left: float
    top: float
    right: float
    below: float
    size: float  # the size of the labels, in points
    rotation: int  # the rotation of the column labels, in degrees

    @property
    def total(self) -> tuple[float, float]:
        """Width and height with all text."""
        return self.left + self.width + self.right, self.below + self.height + self.top


def make_heat_map(
    values: ArrayLike,
    queries: Words,
    keys: Words,
    mask: ArrayLike | None = None,
    *,
    name: str = "weights",
    numbers: bool = False,
    legend: bool = False,
) -> HeatMap:
    """Check and copy the caller's arrays and return a heat map with the scale of weights, or of scores.

    Args:
        values: The numbers, (T, S). Minus infinity counts as masked.
        queries, keys, mask: As for `attention_map`.
        name: The name of `values` in error messages. "scores" have a scale that is symmetric about 0.
        numbers: Whether the values are written in the cells.
        legend: Whether masked cells, if there are any, have an entry in the legend.

    Raises:
        UserError: If a shape is wrong, the number of labels is wrong, or a shown value is not finite.
    """
    copied = array(values, name, 2).astype(np.float64)
    shown = mask_array(mask, copied.shape) & (copied != -np.inf)
    refuse_not_finite(copied, name, shown)
    rows, columns = copied.shape
    queries = None if queries is None else words(queries, rows, "queries")
    keys = None if keys is None else words(keys, columns, "keys")
    scale = signed_scale(copied[shown], "score") if name == "scores" else weight_scale(copied[shown])
    entries = (MASKED,) if legend and not shown.all() else ()
    return HeatMap(copied, shown, queries, keys, scale, numbers, legend=entries)


def refuse_not_finite(values: np.ndarray, name: str, mask: np.ndarray | bool = True) -> None:
    """Raise a UserError unless all numbers that are not masked are finite.

    Args:
        values: The numbers.
        name: What they are, for the message.
        mask: Bool, of the same shape, False where a number is masked. True for none.
    """
    wrong = np.argwhere(~np.isfinite(values) & mask)
    if len(wrong):
        index = tuple(wrong[0].tolist())
        raise UserError(f"{name}{list(index)} is {values[index]}: a colour needs a finite number")


def room(heat: HeatMap, cell: float, *, bar: bool) -> Room:
    """Return the space, in inches, that a heat map takes with cells of a given size.

    Args:
        heat, cell: The heat map, and the side of a cell.
        bar: Whether there is a colour bar at the right.
    """
    rows, columns = heat.values.shape
    down, across = cell * heat.stretch[0], cell * heat.stretch[1]
    pitch = across * heat.every[1]  # the distance between neighbouring labels of columns
    size = TEXT if min(pitch, down * heat.every[0]) >= word_line(TEXT) else SMALL
    keys = [str(columns - 1)] if heat.keys is None else heat.keys[:: heat.every[1]]
    queries = [str(rows - 1)] if heat.queries is None else heat.queries[:: heat.every[0]]
    rotation = 0 if heat.keys is None else _key_rotation(keys, pitch, size)
    band, overhang = _band_of(keys, pitch, size, rotation)
    title_width, title = text_size(heat.title, PANEL, math=True) if heat.title else (0.0, 0.0)
    above = AXIS + band + GAP + (title + 2 * GAP if heat.title else 0)
    named = widest((text for _, text in heat.legend), TEXT) + 0.35
    width, height = columns * across, rows * down
    beside = (title_width - width) / 2  # the title stands in the middle above the cells
    right = max(overhang, beside, named - width if heat.legend else 0)
    left = max(AXIS + widest(queries, size) + GAP, beside)
    if bar:
        right = max(right, PAD + bar_room(heat.scale, bar_height(height)))
    below = max(BAR_LEAST - height, 0) if bar else 0
    below = max(below, word_line(TEXT) - height) + LEGEND * len(heat.legend)
    return Room(width, height, left, above, right, below, size, rotation)


def bar_height(height: float) -> float:
    """Return the height of a colour bar beside a body of this height, in inches."""
    return max(BAR_LEAST, min(height, 3.0))


def _bar_ticks(scale: Scale, height: float) -> dict[float, str]:
    """Return the numbers beside a colour bar, each with its text."""
    places = MaxNLocator(max(1, min(5, int(height / 0.4)))).tick_values(scale.low, scale.high)
    slack = 1e-6 * (scale.high - scale.low)  # of rounding in float32
    inside = [float(v) for v in places if scale.low - slack <= v <= scale.high + slack]
    return {v: f"{v:.3g}".replace("-", "−") for v in inside}


def bar_room(scale: Scale, height: float) -> float:
    """Return the width of a colour bar with its numbers and its label, in inches."""
    return BAR + 0.1 + widest(_bar_ticks(scale, height).values(), TEXT) + (AXIS if scale.label else 0)


def _key_rotation(keys: Sequence[str], cell: float, size: float) -> int:
    """Return the smallest rotation of the column labels, in degrees, at which they do not overlap."""
    if widest(keys, size) + GAP <= cell:
        return 0
    return 45 if cell * math.sin(math.pi / 4) >= line_height(size) else 90


def _band_of(keys: Sequence[str], cell: float, size: float, rotation: int) -> tuple[float, float]:
    """Return the height of the column labels, and by how much they extend beyond the right edge."""
    widths = np.array([text_size(key, size)[0] for key in keys])
    if rotation == 0:
        return line_height(size), max((widths[-1] - cell) / 2, 0)
    if rotation == 90:
        return float(widths.max()), 0
    slope = math.sqrt(0.5)
    ends = widths * slope - cell * np.arange(len(keys) - 1, -1, -1) - cell / 2 + 0.05
    return float(widths.max()) * slope + 0.6 * line_height(size), max(float(ends.max()), 0)


def draw_at(figure: Figure, heat: HeatMap, left: float, top: float, *, cell: float, bar: bool) -> Axes:
    """Draw a heat map in a figure and return its axes.

    Args:
        figure, heat: The figure and the heat map.
        left, top: The upper left corner of the heat map with all its text, in inches.
        cell: The side of a cell, in inches.
        bar: Whether to draw a colour bar at the right.
    """
    r = room(heat, cell, bar=bar)
    body = axes_at(figure, left + r.left, top - r.top - r.height, r.width, r.height)
    image = _draw_on(body, heat, r)
    if bar:
        high = bar_height(r.height)
        beside = axes_at(figure, left + r.left + r.width + PAD, top - r.top - high, BAR, high)
        colour_bar(figure, beside, image, heat.scale, high)
    return body


def colour_bar(figure: Figure, beside: Axes, image: AxesImage, scale: Scale, height: float) -> None:
    """Draw a colour bar on axes of its own.

    Args:
        figure, beside: The figure and the axes of the colour bar.
        image, scale: The image whose colours it explains, and its scale.
        height: The height of the axes, in inches.
    """
    ticks = _bar_ticks(scale, height)
    bar = figure.colorbar(image, cax=beside, ticks=list(ticks))
    beside.set_yticks(list(ticks), list(ticks.values()))
    bar.set_label(scale.label)
    bar.outline.set_linewidth(0.5)
    beside.tick_params(labelsize=TEXT, length=2)


def _fit(ax: Axes, heat: HeatMap) -> Room:
    """Return the space that a heat map takes on the given axes."""
    width, height = size_of(ax)
    rows, columns = heat.values.shape
    cell = min(width / columns, height / rows)
    if cell < heat.least_cell:
        what = "numbers" if heat.numbers else "labels"
        raise UserError(
            f"{rows} × {columns} {what} do not fit on axes of {width:.1f} × {height:.1f} inches with letters "
            "of 8 points: make the axes larger, or draw fewer rows and columns"
        )
    return room(heat, cell, bar=False)


def _draw_on(ax: Axes, heat: HeatMap, r: Room) -> AxesImage:
    """Draw image, labels, numbers and legend of a heat map on axes and return the image."""
    values = np.ma.masked_array(heat.values, ~heat.mask)
    norm = Normalize(heat.scale.low, heat.scale.high)
    aspect = heat.stretch[0] / heat.stretch[1]
    image = ax.imshow(values, cmap=heat.scale.colours, norm=norm, aspect=aspect, interpolation="nearest")
    _words(ax, heat, r)
    ax.spines[:].set_visible(False)
    rows, columns = heat.values.shape
    if min(r.width / columns, r.height / rows) > 0.08:
        ax.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=0.6)
        ax.tick_params(which="minor", length=0)
    if heat.numbers:
        style: dict[str, Any] = {"size": SMALL, "ha": "center", "va": "center", "parse_math": False}
        style["label"] = "heat map"
        for (row, column), text in zip(np.argwhere(heat.mask).tolist(), heat.texts, strict=True):
            background = image.cmap(image.norm(heat.values[row, column]))[:3]
            ax.text(column, row, text, color=ink_on(background), **style)
    if heat.title:
        ax.set_title(heat.title, size=PANEL, pad=9)
    if heat.legend:
        _legend(ax, heat.legend, -GAP / r.height)
    return image


def _words(ax: Axes, heat: HeatMap, r: Room) -> None:
    """Write the labels of rows, columns and axes."""
    rows, columns = heat.values.shape
    down, across = heat.every
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    length, pad = 2 if heat.keys is None else 0, 5 if r.rotation else 3
    ax.tick_params(axis="x", length=length, labelsize=r.size, pad=pad)
    ax.tick_params(axis="y", length=2 if heat.queries is None else 0, labelsize=r.size, pad=3)
    if heat.keys is None:
        ax.xaxis.set_major_locator(_whole(r.width / 0.4))
    else:
        style: dict[str, Any] = {"rotation": r.rotation, "parse_math": False}
        if r.rotation:
            style |= {"rotation_mode": "anchor", "ha": "left", "va": "center"}
        ax.set_xticks(range(0, columns, across), heat.keys[::across], **style)
    if heat.queries is None:
        ax.yaxis.set_major_locator(_whole(r.height / 0.3))
    else:
        ax.set_yticks(range(0, rows, down), heat.queries[::down], parse_math=False)
    ax.set_ylabel(heat.axis_labels[0], size=LABEL)
    ax.set_xlabel(heat.axis_labels[1], size=LABEL)


def _legend(ax: Axes, entries: Sequence[tuple[str, str]], y: float) -> None:
    """Draw coloured squares and their meaning below `y`, a fraction of the axes' height."""
    handles = [Patch(facecolor=colour, edgecolor="#444444", label=text) for colour, text in entries]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, y), "borderaxespad": 0}
    ax.legend(handles=handles, borderpad=0, handlelength=1, handleheight=1, **place)


def _whole(room: float) -> MaxNLocator:
    """Return a locator of at most 8 round whole numbers, or of at most `room` if that is smaller."""
    most = max(1, min(8, int(room)))
    return MaxNLocator(most, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1)


# Pictures of one matrix, or of several in a row.


def attention_map(
    weights: ArrayLike,
    queries: Words,
    keys: Words,
    *,
    mask: ArrayLike | None = None,
    numbers: bool = False,
    largest: float | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw attention weights as a heat map: darker cells have larger weights, masked cells are dark grey.

    Args:
        weights: The weights, (T, S).
        queries, keys: T row labels and S column labels, or None for numbers.
        mask: Bool, broadcastable to (T, S), True where a query may attend.
        numbers: Whether to write the weights in the cells.
        largest: The weight of the darkest colour; by default the largest one shown.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit at 8 points.
    """
    with drawing(queries, keys, title):
        heat = make_heat_map(weights, queries, keys, mask, numbers=numbers, legend=True)
        if largest is not None:
            if not (is_number(largest) and 0 < largest < math.inf):
                raise UserError(f"largest is {short(largest)}: give a number above 0")
            heat.scale = heat.scale._replace(high=largest)
        return _finish(heat, ax, title)


def score_map(
    scores: ArrayLike,
    queries: Words,
    keys: Words,
    *,
    mask: ArrayLike | None = None,
    numbers: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the scores before the softmax: blue above 0, orange below, masked and -inf cells dark grey.

    Args:
        scores: The scores, (T, S).
        queries, keys, mask: As for `attention_map`.
        numbers: Whether to write the scores in the cells.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit at 8 points.
    """
    with drawing(queries, keys, title):
        heat = make_heat_map(scores, queries, keys, mask, name="scores", numbers=numbers, legend=True)
        return _finish(heat, ax, title)


def mask_map(
    mask: ArrayLike, queries: Words, keys: Words, *, ax: Axes | None = None, title: str | None = None
) -> Figure:
    """Draw a mask: light where a query may attend, dark grey where it may not.

    Args:
        mask: Bool, (T, S) or broadcastable to the labels.
        queries, keys: T row labels and S column labels, or None for numbers.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit at 8 points.
    """
    with drawing(queries, keys, title):
        if queries is None or keys is None:
            rows, columns = np.atleast_2d(array(mask, "mask", 1, 2, 3, 4)).shape[-2:]
        shape = (rows if queries is None else len(queries), columns if keys is None else len(keys))
        heat = make_heat_map(mask_array(mask, shape), queries, keys, name="mask")
        heat.scale = mask_scale()
        heat.legend = (("#cfe1f2", "may attend"), MASKED)
        return _finish(heat, ax, title, bar=False)


def softmax_panels(
    scores: ArrayLike,
    weights: ArrayLike,
    queries: Words,
    keys: Words,
    *,
    mask: ArrayLike | None = None,
    numbers: bool = False,
    title: str | None = None,
) -> Figure:
    """Draw the scores before the softmax and the weights after it, side by side.

    Args:
        scores, weights: The scores, and their softmax, (T, S).
        queries, keys, mask: As for `attention_map`.
        numbers, title: Whether to write the numbers in the cells, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit at 8 points.
    """
    with drawing(queries, keys, title):
        before, after = (
            make_heat_map(values, queries, keys, mask, name=name, numbers=numbers, legend=True)
            for name, values in (("scores", scores), ("weights", weights))
        )
        before.title, after.title = "before the softmax", "after the softmax"
        return heat_row([before, after], title)


def value_map(
    values: ArrayLike,
    *,
    xlabel: str,
    ylabel: str,
    label: str = "value",
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw signed numbers as colours over two numbered axes: blue above 0, orange below.

    Args:
        values: The numbers, such as position vectors, (N, M). Row 0 is at the top.
        xlabel, ylabel, label: The labels of the columns, of the rows, and of the colour bar.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If the shape is wrong or a number is not finite.
    """
    with drawing(xlabel, ylabel, label, title):
        heat = make_heat_map(values, None, None, name="values")
        refuse_not_finite(heat.values, "values")
        heat.scale = signed_scale(heat.values, label)
        heat.axis_labels = (ylabel, xlabel)
        high, wide = (
            float(np.clip(0.12 * size, least, most))
            for size, least, most in zip(heat.values.shape, (1.4, 4), (5, 7), strict=True)
        )
        place = None
        if ax is None:
            bar = PAD + bar_room(heat.scale, high)
            figure = new_figure(wide + 1 + bar, high + 0.6 + 2 * PAD, title=title, line_width=wide + bar)
            ax = axes_at(figure, 0.85, PAD, wide, high)
            place = axes_at(figure, 0.85 + wide + PAD, PAD, BAR, high)
        else:
            entitle(ax, title)
        image = _draw_on(ax, heat, Room(*size_of(ax), 0, 0, 0, 0, TEXT, 0))
        ax.set_aspect("auto")
        if place is not None:
            colour_bar(root(ax), place, image, heat.scale, high)
        return root(ax)


def heat_row(heats: Sequence[HeatMap], title: str | None = None, *, bar: bool = True) -> Figure:
    """Draw several heat maps side by side with cells of equal size.

    Args:
        heats, title: The heat maps, from left to right, and a title above the figure.
        bar: Whether there is a colour bar at the right.

    Raises:
        UserError: If they do not fit in one figure.
    """
    cell = _row_cell(heats, bar)
    rooms = [room(heat, cell, bar=bar) for heat in heats]
    rows, columns = heats[0].values.shape
    above, below = max(r.top for r in rooms), max(r.height + r.below for r in rooms)
    what = f"a heat map of {rows} × {columns} words"
    figure, left = titled_figure(_row_width(rooms), above + below, title, what=what)
    top = PAD + (above + below)
    for heat, r in zip(heats, rooms, strict=True):
        draw_at(figure, heat, left, top - above + r.top, cell=cell, bar=bar)
        left += r.total[0] + 3 * PAD
    return figure


def thinned(heat: HeatMap) -> HeatMap:
    """Return the heat map with every n-th label only, for the smallest n with which it fits in a figure.

    If one side is so short that all its labels fit, its cells are stretched to the height of a label.
    """
    labelled = heat.queries is not None or heat.keys is not None
    step = 1
    while labelled and heat.least_cell > FINEST and not _fits(heat):
        step += 1
        heat = replace(heat, every=(step, step))
    line, longest = word_line(SMALL), heat.cell * max(heat.values.shape)
    short = [step > 1 and count * line <= longest for count in heat.values.shape]
    return replace(
        heat,
        every=(1 if short[0] else step, 1 if short[1] else step),
        stretch=(line / heat.cell if short[0] else 1.0, line / heat.cell if short[1] else 1.0),
    )


def _fits(heat: HeatMap) -> bool:
    """Return whether a heat map with a colour bar and a title fits in a figure."""
    width, height = room(heat, heat.cell, bar=True).total
    return width + 2 * PAD <= MAX_SIDE and height + TITLE_SPACE + 2 * PAD <= MAX_SIDE


def _row_cell(heats: Sequence[HeatMap], bar: bool) -> float:
    """Return the side of the cells: the preferred one, or a smaller one where the row would be too wide."""
    least = max(heat.least_cell for heat in heats)
    cell = max(least, min(heat.cell for heat in heats))
    while cell > least and _row_width([room(heat, cell, bar=bar) for heat in heats]) + 2 * PAD > MAX_SIDE:
        cell = max(least, 0.97 * cell)
    return cell


def _row_width(rooms: Sequence[Room]) -> float:
    return sum(r.total[0] for r in rooms) + 3 * PAD * (len(rooms) - 1)


def _finish(heat: HeatMap, ax: Axes | None, title: str | None, *, bar: bool = True) -> Figure:
    """Draw on the given axes, or on a figure of its own."""
    if ax is None:
        return heat_row([heat], title, bar=bar)
    heat.title = wrapped(title, size_of(ax)[0], PANEL)
    _draw_on(ax, heat, _fit(ax, heat))
    return root(ax)


# A grid of all heads of all layers.

NARROW = 0.08  # between panels, in inches
BESIDE = 1.2  # the space for the colour bar at the right, and that for a title
LEAST_PANEL, LARGEST_PANEL = 0.5, 2.6  # the longer side of a panel without labels
LEAST_COMPACT = 0.2  # that of a panel of a compact grid, in which the name of a head is its number alone


def attention_grid(
    weights: ArrayLike,
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
    *,
    mask: ArrayLike | None = None,
    large: tuple[int, int] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a small heat map for every head of every layer, all with the same colours.

    The labels stand beside the first column and above the first row where they fit.

    Args:
        weights: The weights, (L, H, T, S).
        queries, keys, mask: As for `attention_map`; the mask may also be one for each layer, (L, T, S).
        large: A pair (layer, head) that is drawn once more, large and with labels, at the right of the
            grid, or below it where the panels can be larger then.
        title: A title above the picture.

    Raises:
        UserError: If a shape is wrong, or the panels do not fit in one figure.
    """
    with drawing(queries, keys, title):
        heats = grid_heats(array(weights, "weights", 4), queries, keys, mask)
        one = _enlarged(heats, large)
        return draw_grid(heats, _best_plan(heats, one), title, one=one, large=large)


def grid_heats(values: np.ndarray, queries: Words, keys: Words, mask: ArrayLike | None) -> "Heats":
    """Return a heat map for every head of every layer, all with the same colours.

    Args:
        values: The weights, (L, H, T, S).
        queries, keys, mask: As for `attention_grid`.
    """
    of_layers = mask is not None and np.ndim(to_numpy(mask)) == 3
    masks = mask_array(to_numpy(mask)[:, None] if of_layers else mask, values.shape)  # (L, H, T, S)
    refuse_not_finite(values, "weights", masks & (values != -np.inf))
    heats = [
        [make_heat_map(head, queries, keys, allowed) for head, allowed in zip(*layer, strict=True)]
        for layer in zip(values, masks, strict=True)
    ]
    shown = values[masks]
    for heat in (heat for row in heats for heat in row):
        heat.scale = weight_scale(shown)
    return heats


Heats = list[list[HeatMap]]  # heats[layer][head]


class Names(NamedTuple):
    """The numbers in the names of the rows and the columns of a grid, such as (3,) for layer 3 alone."""

    layers: Sequence[int]
    heads: Sequence[int]


class Plan(NamedTuple):
    """The layout of the panels, in inches."""

    cell: float
    words: bool  # whether the labels are drawn
    left: float  # the left edge of the first panel, right of the layer names and row labels
    top: float  # the height of head names and column labels
    size: float  # the size of the labels, in points
    rotation: int
    under: bool = False  # whether the large heat map stands below the grid and not at its right
    short: bool = False  # whether the name of a head is its number alone


def _enlarged(heats: Heats, large: tuple[int, int] | None) -> HeatMap | None:
    if large is None:
        return None
    if np.shape(large) != (2,):
        raise UserError(f"large is {short(large)}: give a layer and a head")
    layer = require_index("layer", large[0], len(heats))
    head = require_index("head", large[1], len(heats[0]))
    return replace(heats[layer][head], title=f"layer {layer}, head {head}")


def _best_plan(heats: Heats, one: HeatMap | None) -> Plan:
    """Return the layout with the larger panels: the large heat map at the right of the grid, or below it.

    Raises:
        UserError: If neither fits in one figure.
    """
    if one is None:
        return grid_plan(heats)
    width, height = room(one, one.cell, bar=False).total
    plans: list[Plan] = []
    refused: list[UserError] = []
    for beside, below in ((width + 4 * PAD, 0.0), (0.0, height + 4 * PAD)):
        try:
            plans.append(grid_plan(heats, beside, below)._replace(under=below > 0))
        except UserError as error:
            refused.append(error)
    if not plans:
        raise refused[0]
    return max(plans, key=lambda plan: plan.cell)  # at the right if the cells are equally large


def grid_plan(
    heats: Heats, beside: float = 0, below: float = 0, *, compact: bool = False, last: int | None = None
) -> Plan:
    """Return the layout with the largest panels that fit in a figure, with labels if they can be read.

    Args:
        heats: The heat maps.
        beside, below: The width, in inches, that something else takes at the right of the grid, and the
            height that something else takes below it.
        compact: Whether panels may be so small that the name of a head is its number alone. Then no cell is
            smaller than FINEST either, as long as there are no more cells than panel_cells says.
        last: The largest number of a layer, if the layers are not counted from 0.

    Raises:
        UserError: If the panels do not fit.
    """
    heat = heats[0][0]
    n_queries, n_keys = heat.values.shape
    name = _name_width(f"head {len(heats[0])}") / n_keys  # the smallest cell with which the name fits
    if heat.queries is not None and heat.keys is not None:
        cell = max(word_line(SMALL), min(0.3, 1.5 / max(heat.values.shape)), name)
        rotation = _key_rotation(heat.keys, cell, SMALL)
        if _band_of(heat.keys, cell, SMALL, rotation)[1] > NARROW:
            rotation = 90  # otherwise the labels would extend into the next panel
        over = _band_of(heat.keys, cell, SMALL, rotation)[0]
        left, top = _names_space(len(heats) if last is None else last)
        beside_words = AXIS + widest(heat.queries, SMALL) + GAP
        plan = Plan(cell, True, left + beside_words, top + AXIS + over + GAP, SMALL, rotation)
        width, height = _grid_size(plan, heats)
        if width + beside + BESIDE <= MAX_SIDE and height + below + BESIDE <= MAX_SIDE:
            return plan
    plan = _bare_plan(len(heats) if last is None else last)
    width, height = _panel_space(plan, len(heats), len(heats[0]), beside, below)
    preferred = max(LARGEST_PANEL / max(n_keys, n_queries), FINEST if compact else 0, name)
    cell = min(width / n_keys, height / n_queries, preferred)
    short = compact and cell < name
    if short:
        name = _name_width(str(len(heats[0]))) / n_keys
    if cell * max(n_keys, n_queries) < (LEAST_COMPACT if short else LEAST_PANEL) or cell < name:
        raise UserError(
            f"{len(heats)} × {len(heats[0])} heat maps of {n_queries} × {n_keys} do not fit in {MAX_SIDE} "
            "inches: draw fewer layers or heads"
        )
    return plan._replace(cell=cell, short=short)


def _bare_plan(last: int) -> Plan:
    """Return a layout without labels, whose cells have no size yet. `last` is the largest layer number."""
    left, top = _names_space(last)
    return Plan(0.0, False, left + AXIS, top + AXIS, SMALL, 0)


def _names_space(last: int) -> tuple[float, float]:
    """Return the width of the names of layers and the height of those of heads, in inches."""
    return text_size(f"layer {last}", TEXT)[0] + 2 * GAP, line_height(TEXT) + 2 * GAP


def _name_width(name: str) -> float:
    """Return the smallest width of a panel, in inches, at which the names of its neighbours stay apart."""
    return text_size(name, TEXT)[0] + GAP - NARROW


def _row_height(panel: float) -> float:
    """Return the height of a row of panels of a height, in inches, with the space to the next row."""
    return max(panel + NARROW, word_line(TEXT))  # at least that of the name of its layer


def panel_cells(n_layers: int, n_heads: int, shape: tuple[int, int], last: int) -> tuple[int, int]:
    """Return how many cells, down and across, a panel of a compact grid can show.

    Args:
        n_layers, n_heads, shape: The numbers of layers and heads, and those of queries and keys.
        last: The largest number of a layer.
    """
    width, height = _panel_space(_bare_plan(last), n_layers, n_heads)
    # few queries or keys need larger cells: a panel is as high as the name of a layer, and as wide as the
    # number of a head, or more
    name = _name_width(str(n_heads))
    cell = max(FINEST, (word_line(TEXT) - NARROW) / shape[0], name / shape[1])
    return max(1, int(height / cell)), max(1, int(width / cell))


def _panel_space(
    plan: Plan, n_layers: int, n_heads: int, beside: float = 0, below: float = 0
) -> tuple[float, float]:
    """Return the largest width and height of a panel without labels, in inches."""
    width = (MAX_SIDE - plan.left - BESIDE - beside) / n_heads - NARROW
    return width, (MAX_SIDE - plan.top - below - BESIDE) / n_layers - NARROW


def _panel_size(plan: Plan, heats: Heats) -> tuple[float, float]:
    n_queries, n_keys = heats[0][0].values.shape
    return n_keys * plan.cell, n_queries * plan.cell


def _grid_size(plan: Plan, heats: Heats) -> tuple[float, float]:
    """Return width and height of the grid with its names, in inches."""
    width, height = _panel_size(plan, heats)
    return (
        plan.left + len(heats[0]) * (width + NARROW) - NARROW,
        plan.top + len(heats) * _row_height(height) - NARROW,
    )


def draw_grid(
    heats: Heats,
    plan: Plan,
    title: str | None,
    *,
    names: Names | None = None,
    one: HeatMap | None = None,
    large: tuple[int, int] | None = None,
) -> Figure:
    """Draw the panels of a grid with their names and a colour bar.

    Args:
        heats, plan, title: The heat maps, their layout, and a title above the picture.
        names: The numbers of the layers and the heads; by default they are counted from 0.
        one, large: A heat map that is drawn once more, large, and its layer and head, whose panel gets a
            frame.
    """
    names = Names(range(len(heats)), range(len(heats[0]))) if names is None else names
    width, height = _grid_size(plan, heats)
    bar_high = bar_height(height - plan.top)
    bar = PAD + max(bar_room(heats[0][0].scale, bar_high), 0.85)  # the legend "masked" stands below it
    across, high = width + bar, max(height, bar_high + plan.top + LEGEND + PAD)
    beside = across + 4 * PAD  # the left edge of the large heat map at the right of the grid
    under = high + 4 * PAD  # the upper edge of the large heat map below the grid, from the top
    if one:
        one_width, one_height = room(one, one.cell, bar=False).total
        if plan.under:
            across, high = max(across, one_width), under + one_height
        else:
            across, high = beside + one_width, max(high, one_height)
    line_width = max(across + 2 * PAD, LEAST_TITLE)
    figure, _ = titled_figure(across, high, title, line_width=line_width)
    top = PAD + high
    image = _panels(figure, heats, plan, top, large)
    panel_width, panel_height = _panel_size(plan, heats)
    above = top - line_height(TEXT) / 2
    if plan.short:
        write_at(figure, PAD + plan.left - GAP, above, "head", ha="right")
    for j, head in enumerate(names.heads):
        x = PAD + plan.left + j * (panel_width + NARROW) + panel_width / 2
        write_at(figure, x, above, f"{'' if plan.short else 'head '}{head}")
    for i, layer in enumerate(names.layers):
        y = top - plan.top - i * _row_height(panel_height) - panel_height / 2
        write_at(figure, PAD, y, f"layer {layer}", ha="left")
    beside_grid = axes_at(figure, 2 * PAD + width, top - plan.top - bar_high, BAR, bar_high)
    colour_bar(figure, beside_grid, image, heats[0][0].scale, bar_high)
    if not all(heat.mask.all() for row in heats for heat in row):
        _legend(beside_grid, (MASKED,), -PAD / bar_high)
    if one:
        left, upper = (PAD, top - under) if plan.under else (PAD + beside, top)
        draw_at(figure, one, left, upper, cell=one.cell, bar=False)
    return figure


def _panels(figure: Figure, heats: Heats, plan: Plan, top: float, large: tuple[int, int] | None) -> AxesImage:
    """Draw the small heat maps, with labels only at the left and the upper edge."""
    width, height = _panel_size(plan, heats)
    r = room(heats[0][0], plan.cell, bar=False)._replace(size=plan.size, rotation=plan.rotation)
    for (i, j), heat in np.ndenumerate(np.array(heats, object)):
        left = PAD + plan.left + j * (width + NARROW)
        bottom = top - plan.top - i * _row_height(height) - height
        ax = axes_at(figure, left, bottom, width, height)
        heat = replace(heat, queries=heat.queries if plan.words and j == 0 else None)
        heat = replace(heat, keys=heat.keys if plan.words and i == 0 else None)
        image = _draw_on(ax, heat, r)
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
    return image
