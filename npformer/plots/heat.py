"""How a heat map is laid out and drawn: the part that all pictures in heatmap.py share."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from npformer.errors import UserError
from npformer.plots.layout import PAD, array, axes_at, mask_array, size_of, word_line, words
from npformer.plots.palette import COLOURS, ink_on, signed_map, weight_map
from npformer.plots.style import LABEL, SMALL, TEXT, line_height, number, text_size, widest

GAP = 0.06  # between words and cells
AXIS = line_height(LABEL) + GAP  # room of an axis label
LARGEST = 0.45  # side of a cell, where there is room
BAR, BAR_LEAST = 0.16, 1.0  # width and least height of a colour bar
LEGEND = 0.25  # height of a line of the legend
PANEL = 11.0  # points, the name of one of several heat maps
MASKED = (COLOURS["masked"], "masked")  # a line of the legend


class Scale(NamedTuple):
    """Which number has which colour."""

    colours: Colormap
    low: float
    high: float
    label: str


def weight_scale(values, label="weight") -> Scale:
    """From 0 to the largest weight. Shapes: values (...), those that are shown."""
    top = float(values.max(initial=0))
    return Scale(weight_map(), 0.0, top if top > 0 else 1.0, label)


def signed_scale(values, label) -> Scale:
    """Symmetric about 0, which is white. Shapes: values (...), those that are shown."""
    top = float(np.abs(values).max(initial=0))
    return Scale(signed_map(), -top if top > 0 else -1.0, top if top > 0 else 1.0, label)


def mask_scale() -> Scale:
    """Two colours: may look, and masked."""
    return Scale(ListedColormap([COLOURS["masked"], "#cfe1f2"], "npformer_mask"), 0.0, 1.0, "")


@dataclass
class HeatMap:
    """A matrix of numbers as colours, rows queries and columns keys, ready to be drawn somewhere."""

    values: np.ndarray  # (T, S)
    mask: np.ndarray  # bool (T, S), False is dark grey
    queries: list[str] | None  # None numbers them
    keys: list[str] | None
    scale: Scale
    numbers: bool = False
    title: str | None = None
    axis_labels: tuple[str, str] = ("query", "key")
    legend: tuple[tuple[str, str], ...] = ()  # pairs (colour, text)

    @property
    def least_cell(self) -> float:
        """The smallest side of a cell, in inches, that leaves all writing legible."""
        least = 0.02 if self.queries is None and self.keys is None else word_line(SMALL)
        if self.numbers:
            least = max(least, widest(self.texts, SMALL) + 2 * GAP)
        return least

    @property
    def cell(self) -> float:
        """The side of a cell where the picture may choose its own size."""
        return max(self.least_cell, min(LARGEST, 6 / max(self.values.shape)))

    @property
    def texts(self) -> list[str]:
        """The numbers as written in the cells that are not masked, row by row."""
        return [number(v) for v, seen in zip(self.values.flat, self.mask.flat, strict=True) if seen]


class Room(NamedTuple):
    """Inches that a heat map with square cells of one size takes: the body, and what stands round it."""

    width: float  # of the body
    height: float
    left: float
    top: float
    right: float
    below: float
    size: float  # of its words, in points
    rotation: int  # of the keys

    @property
    def total(self) -> tuple[float, float]:
        """Width and height of all."""
        return self.left + self.width + self.right, self.below + self.height + self.top


def make(values, queries, keys, mask, *, name="weights") -> HeatMap:
    """Check and copy what the caller gave; the scale is that of weights.

    Shapes: values (T, S), mask broadcastable to it.
    Errors: UserError for other shapes, a wrong number of words, or NaN.
    """
    values = array(values, name, 2).astype(np.float64)
    mask = mask_array(mask, values.shape) & (values != -np.inf)
    refuse_nan(values, mask, name)
    rows, columns = values.shape
    queries = None if queries is None else words(queries, rows, "queries")
    keys = None if keys is None else words(keys, columns, "keys")
    return HeatMap(values, mask, queries, keys, weight_scale(values[mask]))


def refuse_nan(values, mask, name):
    """Errors: UserError that names the first number which is not finite, if there is one."""
    wrong = np.argwhere(~np.isfinite(values) & mask)
    if len(wrong):
        index = tuple(wrong[0].tolist())
        raise UserError(f"{name}{list(index)} is {values[index]}: a colour needs a finite number")


def room(heat: HeatMap, cell: float, *, bar: bool) -> Room:
    """The room that it takes with cells of that side, in inches."""
    rows, columns = heat.values.shape
    size = TEXT if cell >= word_line(TEXT) else SMALL
    keys = [str(columns - 1)] if heat.keys is None else heat.keys
    queries = [str(rows - 1)] if heat.queries is None else heat.queries
    rotation = 0 if heat.keys is None else key_rotation(keys, cell, size)
    band, overhang = band_of(keys, cell, size, rotation)
    title = text_size(heat.title, PANEL, math=True)[1] + 2 * GAP if heat.title else 0
    named = widest((text for _, text in heat.legend), TEXT) + 0.35
    right = max(overhang, named - columns * cell if heat.legend else 0)
    left = AXIS + widest(queries, size) + GAP
    height = rows * cell
    if bar:
        right = max(right, PAD + bar_room(heat.scale, bar_height(height)))
    below = max(BAR_LEAST - height, 0) if bar else 0
    below = max(below, word_line(TEXT) - height) + LEGEND * len(heat.legend)
    return Room(columns * cell, height, left, AXIS + band + GAP + title, right, below, size, rotation)


def bar_height(height: float) -> float:
    """How high a colour bar beside a body of that height is, in inches."""
    return max(BAR_LEAST, min(height, 3.0))


def bar_ticks(scale: Scale, height: float) -> dict[float, str]:
    """The numbers beside a colour bar and how they are written."""
    places = MaxNLocator(max(1, min(5, int(height / 0.4)))).tick_values(scale.low, scale.high)
    inside = [float(v) for v in places if scale.low - 1e-12 <= v <= scale.high * (1 + 1e-9) + 1e-12]
    return {v: f"{v:.3g}".replace("-", "−") for v in inside}


def bar_room(scale: Scale, height: float) -> float:
    """Width of a colour bar with its numbers and its label, in inches."""
    return BAR + 0.1 + widest(bar_ticks(scale, height).values(), TEXT) + (AXIS if scale.label else 0)


def key_rotation(keys, cell, size) -> int:
    """Degrees by which the words over the columns are turned: as few as leave them apart."""
    if widest(keys, size) + GAP <= cell:
        return 0
    return 45 if cell * math.sin(math.pi / 4) >= line_height(size) else 90


def band_of(keys, cell, size, rotation) -> tuple[float, float]:
    """Height of the words over the columns, and by how much they reach over the right edge."""
    widths = np.array([text_size(key, size)[0] for key in keys])
    if rotation == 0:
        return line_height(size), max((widths[-1] - cell) / 2, 0)
    if rotation == 90:
        return float(widths.max()), 0
    slope = math.sqrt(0.5)
    ends = widths * slope - cell * np.arange(len(keys) - 1, -1, -1) - cell / 2 + 0.05
    return float(widths.max()) * slope + 0.6 * line_height(size), max(float(ends.max()), 0)


def draw_at(figure: Figure, heat: HeatMap, left: float, top: float, *, cell: float, bar: bool) -> Axes:
    """Draw it in a figure, its upper left corner (title and words included) at a place in inches."""
    r = room(heat, cell, bar=bar)
    body = axes_at(figure, left + r.left, top - r.top - r.height, r.width, r.height)
    image = draw_on(body, heat, r)
    if bar:
        high = bar_height(r.height)
        beside = axes_at(figure, left + r.left + r.width + PAD, top - r.top - high, BAR, high)
        colour_bar(figure, beside, image, heat.scale, high)
    return body


def colour_bar(figure: Figure, beside: Axes, image: AxesImage, scale: Scale, height: float) -> None:
    """A colour bar in axes of their own, `height` inches high."""
    ticks = bar_ticks(scale, height)
    made = figure.colorbar(image, cax=beside, ticks=list(ticks))
    beside.set_yticks(list(ticks), list(ticks.values()))
    made.set_label(scale.label)
    made.outline.set_linewidth(0.5)
    beside.tick_params(labelsize=TEXT, length=2)


def fit(ax: Axes, heat: HeatMap) -> Room:
    """The room on given axes. Errors: UserError where the words or numbers do not fit."""
    width, height = size_of(ax)
    rows, columns = heat.values.shape
    cell = min(width / columns, height / rows)
    if cell < heat.least_cell:
        what = "numbers" if heat.numbers else "words"
        raise UserError(
            f"{rows} × {columns} {what} do not fit on axes of {width:.1f} × {height:.1f} inches with letters "
            "of 8 points: make the axes larger, or draw fewer"
        )
    return room(heat, cell, bar=False)


def draw_on(ax: Axes, heat: HeatMap, r: Room) -> AxesImage:
    """Image, words, numbers and legend on axes."""
    values = np.ma.masked_array(heat.values, ~heat.mask)
    norm = Normalize(heat.scale.low, heat.scale.high)
    image = ax.imshow(values, cmap=heat.scale.colours, norm=norm, aspect="equal", interpolation="nearest")
    _words(ax, heat, r)
    ax.spines[:].set_visible(False)
    rows, columns = heat.values.shape
    if min(r.width / columns, r.height / rows) > 0.08:
        _lines_between(ax, heat.values.shape)
    if heat.numbers:
        _numbers(ax, heat, image)
    if heat.title:
        ax.set_title(heat.title, size=PANEL, pad=9)
    if heat.legend:
        legend(ax, heat.legend, -GAP / r.height)
    return image


def legend(ax: Axes, entries, y: float) -> None:
    """Squares of colours and what they mean, under axes; y is a fraction of their height."""
    handles = [Patch(facecolor=colour, edgecolor="#444444", label=text) for colour, text in entries]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, y), "borderaxespad": 0}
    ax.legend(handles=handles, borderpad=0, handlelength=1, handleheight=1, **place)


def _words(ax, heat, r):
    rows, columns = heat.values.shape
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(
        axis="x", length=2 if heat.keys is None else 0, labelsize=r.size, pad=5 if r.rotation else 3
    )
    ax.tick_params(axis="y", length=2 if heat.queries is None else 0, labelsize=r.size, pad=3)
    if heat.keys is None:
        ax.xaxis.set_major_locator(_whole(r.width / 0.4))
    else:
        turned = {"rotation_mode": "anchor", "ha": "left", "va": "center"} if r.rotation else {}
        ax.set_xticks(range(columns), heat.keys, rotation=r.rotation, parse_math=False, **turned)
    if heat.queries is None:
        ax.yaxis.set_major_locator(_whole(r.height / 0.3))
    else:
        ax.set_yticks(range(rows), heat.queries, parse_math=False)
    ax.set_ylabel(heat.axis_labels[0], size=LABEL)
    ax.set_xlabel(heat.axis_labels[1], size=LABEL)


def _whole(room) -> MaxNLocator:
    """Round whole numbers, as many as have room and at most 8."""
    return MaxNLocator(max(1, min(8, int(room))), integer=True, steps=[1, 2, 5, 10])


def _lines_between(ax, shape):
    rows, columns = shape
    ax.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=0.6)
    ax.tick_params(which="minor", length=0)


def _numbers(ax, heat, image):
    for (row, column), value in np.ndenumerate(heat.values):
        if heat.mask[row, column]:
            background = image.cmap(image.norm(value))[:3]
            ax.text(
                column, row, number(value), size=SMALL, ha="center", va="center", color=ink_on(background)
            )
