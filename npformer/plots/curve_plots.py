"""Curves over positions or steps, pages of several panels, and costs on logarithmic axes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from npformer.errors import UserError, quantity
from npformer.plots.layout import PAD, array, axes_at, entitle, new_figure, root, size_of, words
from npformer.plots.palette import head_colour
from npformer.plots.style import LABEL, TEXT, drawing, line_height, visible, widest, wrapped
from npformer.validation import require_count

WIDTH, HEIGHT = 5.6, 3.4  # inches, of the axes
SAMPLE = 0.26  # length of a sample of the curve, beside its name
# the curves differ in their dashes as well, for readers who cannot tell their colours apart
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
# the order in which the colours of the heads are used for curves: blue comes first
ORDER = (4, 0, 1, 2, 5, 3, 8, 10, 7, 9, 6, 11, 13, 14, 12, 15)


def curves(
    y: ArrayLike,
    x: ArrayLike | None = None,
    *,
    labels: Sequence[str] | None = None,
    xlabel: str = "step",
    ylabel: str = "",
    xscale: str = "linear",
    yscale: str = "linear",
    legend: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one curve for each row of y. Its name stands at its right end or in a legend.

    Args:
        y: The values, (P,) or (N, P). A curve has a gap where y is NaN.
        x: The values of x, (P,); 0, 1, ... by default.
        labels: N names.
        xlabel, ylabel: The labels of the axes.
        xscale, yscale: "linear" or "log".
        legend: Whether the names stand in a legend instead of at the curves' ends.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the names do not fit above each other.
    """
    values = array(y, "y", 1, 2)
    values = values.reshape(-1, values.shape[-1])
    places = np.arange(values.shape[1]) if x is None else _places(x, "x")
    if len(places) != values.shape[1]:
        raise UserError(
            f"x has {quantity(len(places), 'number')}, and y {quantity(values.shape[1], 'column')}: "
            "give one number for each column"
        )
    if not {xscale, yscale} <= {"linear", "log"}:
        raise UserError(f"the scales are {xscale!r} and {yscale!r}: choose linear or log")
    with drawing(labels, xlabel, ylabel, title):
        names = [] if labels is None else words(labels, len(values), "labels")
        if ax is None:
            ax = _axes_for_curves([] if legend else names, ylabel, title)
        else:
            entitle(ax, title)
        lines = [
            ax.plot(places, row, color=curve_colour(i), linestyle=DASHES[i % 4], linewidth=1.8, **_dots(row))[
                0
            ]
            for i, row in enumerate(values)
        ]
        ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
        _dress(ax, places, {ax.xaxis: xscale, ax.yaxis: yscale})
        if names and legend:
            _put_legend(ax, lines, names)
        elif names:
            _name_ends(ax, lines, names, yscale)
        return root(ax)


def _places(x: ArrayLike, name: str) -> np.ndarray:
    """Return the numbers of an x-axis, (P,), or raise UserError if they are none."""
    places = array(x, name, 1)
    if not np.isfinite(places).all():
        raise UserError(f"{name} has numbers that are not finite: an axis needs finite ones")
    return places


def _dots(y: np.ndarray) -> dict[str, Any]:
    """Return the settings of dots at the numbers that have no neighbour to draw a line to. Shapes: y (P,)."""
    known = np.pad(np.isfinite(y), 1)  # (P + 2,)
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    return {"marker": "o", "markersize": 3.5, "markevery": alone} if alone.any() else {}


def curve_colour(index: int) -> str:
    """Return the colour of a curve: the heads' colours, ordered so that neighbours differ most."""
    return head_colour(ORDER[index % len(ORDER)])


def _axes_for_curves(names: Sequence[str], ylabel: str, title: str | None) -> Axes:
    right = widest(names, TEXT) + SAMPLE + 0.25 if names else 0.28  # half of the last number of the x-axis
    left = 0.62 + (line_height(LABEL) if ylabel else 0)
    size = PAD + left + WIDTH + right, 0.55 + HEIGHT + 2 * PAD
    figure = new_figure(*size, title=title, line_width=WIDTH + right)
    return axes_at(figure, PAD + left, 0.55, WIDTH, HEIGHT)


def _dress(ax: Axes, places: np.ndarray, scales: Mapping[Axis, str]) -> None:
    """Draw a light grid without margins at the sides, and whole ticks if x is whole. Shapes: places (P,)."""
    ax.grid(color="#e3e5e8", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TEXT)
    for axis, scale in scales.items():
        if scale == "log":
            # plain numbers, because the exponents of powers of ten would be smaller than 8 points
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
            low, high = axis.get_view_interval()
            if high < 100 * low:  # a scale of less than two powers of ten has other ticks, too
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    xscale = scales[ax.xaxis]
    if xscale == "linear" and places.dtype.kind in "iu":
        ax.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
    low, high = float(places.min()), float(places.max())
    if high > low and (low > 0 or xscale == "linear"):
        ax.set_xlim(low, high)


def _put_legend(ax: Axes, lines: Sequence[Line2D], names: Sequence[str]) -> None:
    """Write the names beside a sample of each line, or raise a UserError if they do not fit into the axes."""
    width, height = size_of(ax)
    if len(names) * line_height(TEXT) * 1.3 > height or widest(names, TEXT) + 0.6 > width:
        raise UserError(
            f"the names of {quantity(len(names), 'curve')} do not fit in a legend at 8 points: draw fewer"
        )
    frame: dict[str, Any] = {"frameon": True, "framealpha": 0.9, "edgecolor": "none"}
    legend = ax.legend(lines, names, loc="best", handlelength=2.5, **frame)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _name_ends(ax: Axes, lines: Sequence[Line2D], names: Sequence[str], yscale: str) -> None:
    """Write each name beside its curve's last point, moved up or down until no two names overlap."""
    width, height = size_of(ax)
    room = line_height(TEXT)
    if len(names) * room > height:
        raise UserError(
            f"the names of {quantity(len(names), 'curve')} do not fit at 8 points beside axes "
            f"{height:.1f} inches high: draw fewer curves"
        )
    low, high = ax.get_ylim()
    ends = np.array([_last(line.get_ydata()) for line in lines], np.float64)  # (N,)
    if yscale == "log":
        low, high, ends = np.log(low), np.log(high), np.log(np.maximum(ends, low))
    wanted = np.clip((ends - low) / (high - low), 0, 1) * height
    heights = _spread(wanted, room, height)
    for i, (line, name, end) in enumerate(zip(lines, names, wanted, strict=True)):
        y = heights[i] / height
        style: dict[str, Any] = {"color": line.get_color(), "transform": ax.transAxes, "clip_on": False}
        ax.plot([1, 1 + 0.14 / width], [end / height, y], linewidth=0.7, label="_leader", **style)
        sample = [1 + 0.14 / width, 1 + (0.14 + SAMPLE) / width]
        ax.plot(sample, [y, y], linewidth=1.8, linestyle=DASHES[i % 4], label="_sample", **style)
        x = 1 + (0.2 + SAMPLE) / width
        ax.text(x, y, name, va="center_baseline", transform=ax.transAxes, parse_math=False)


def _last(values: ArrayLike) -> float:
    """Return the last number that is not NaN, or 0 if there is none."""
    finite = np.asarray(values)[np.isfinite(values)]
    return finite[-1] if len(finite) else 0.0


def _spread(wanted: ArrayLike, room: float, height: float) -> np.ndarray:
    """Return heights near the wanted ones, (N,), at least `room` apart, and all in 0 .. height."""
    order = np.argsort(wanted, kind="stable")
    heights = np.asarray(wanted, np.float64)[order]
    heights = np.clip(heights, room / 2, height - room / 2)
    for i in range(1, len(heights)):  # move up where two are too close
        heights[i] = max(heights[i], heights[i - 1] + room)
    heights[-1] = min(heights[-1], height - room / 2)
    for i in range(len(heights) - 2, -1, -1):  # move down again what is now above the upper limit
        heights[i] = min(heights[i], heights[i + 1] - room)
    result = np.empty_like(heights)
    result[order] = heights
    return result


# A page of panels over the same x, for the measurements of a training run.

PANEL_WIDTH, PANEL_HEIGHT = 4.6, 2.3  # inches, of a panel's axes
PANEL_LEFT, PANEL_BELOW = 0.62, 0.5  # the space for the ticks and their label
PANEL_ABOVE = 0.32  # the space for a panel's name of one line

SMOOTHED = 0.04  # the window of a smoothed curve, as a share of its numbers
FAINT = 0.3  # the opacity of the numbers behind it


class Curve(NamedTuple):
    """A curve of the numbers y over x.

    `marked` draws a dot at each number, for curves of few points. `smooth` draws the curve smoothed, and the
    numbers themselves faintly behind it, for curves with noise.
    """

    x: Any  #: (N,)
    y: Any  #: (N,)
    label: str = ""
    marked: bool = False
    smooth: bool = False


class Panel(NamedTuple):
    """Curves that share axes, and the name of the measured quantity. `from_zero` starts the y-axis at 0."""

    name: str
    curves: Sequence[Curve]
    from_zero: bool = False


def curve_page(
    panels: Sequence[Panel], *, xlabel: str = "step", title: str | None = None, columns: int = 2
) -> Figure:
    """Draw panels in rows over the same range of x. Labelled curves are named in a legend.

    Args:
        panels: The panels, from left to right, then the next row.
        xlabel, title: The label of every x-axis, and a title above the page.
        columns: The number of panels in a row.

    Raises:
        UserError: If a panel has no curves, x and y of a curve differ in length, or the page is too large.
    """
    sides = [[_panel_numbers(panel, curve) for curve in panel.curves] for panel in panels]
    if not panels or not all(sides):
        raise UserError("a page of curves needs panels, and each panel a curve")
    low = min(x.min() for curves in sides for x, _ in curves)
    high = max(x.max() for curves in sides for x, _ in curves)
    require_count("columns", columns)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    texts = [(panel.name, [curve.label for curve in panel.curves]) for panel in panels]
    with drawing(texts, xlabel, title):
        names = [wrapped(panel.name, PANEL_WIDTH, LABEL, weight="bold") for panel in panels]
        above = PANEL_ABOVE + max(name.count("\n") for name in names) * line_height(LABEL)
        width = columns * (PANEL_LEFT + PANEL_WIDTH + PAD) + 2 * PAD  # half of the last number of the x-axis
        height = rows * (above + PANEL_HEIGHT + PANEL_BELOW)
        figure = new_figure(width, height + PAD, "this page of curves", title=title)
        for index, (panel, name, numbers) in enumerate(zip(panels, names, sides, strict=True)):
            row, column = divmod(index, columns)
            bottom = height - (row + 1) * (above + PANEL_HEIGHT + PANEL_BELOW) + PANEL_BELOW
            left = PAD + PANEL_LEFT + column * (PANEL_LEFT + PANEL_WIDTH + PAD)
            ax = axes_at(figure, left, bottom, PANEL_WIDTH, PANEL_HEIGHT)
            named = _draw_curves(ax, panel.curves, numbers)
            _dress(ax, np.array([low, high], np.float64), {ax.xaxis: "linear", ax.yaxis: "linear"})
            if panel.from_zero:
                ax.set_ylim(bottom=0)
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))
            # written as text without mathtext, unlike set_title: a name is not a formula
            up = 1 + (above / 2) / PANEL_HEIGHT
            style: dict[str, Any] = {"size": LABEL, "weight": "bold", "va": "center", "parse_math": False}
            ax.text(0, up, name, transform=ax.transAxes, **style)
            if named:
                _put_legend(ax, *zip(*named, strict=True))
            ax.set_xlabel(xlabel)
    return figure


def _draw_curves(
    ax: Axes, curves: Sequence[Curve], numbers: Sequence[tuple[np.ndarray, np.ndarray]]
) -> list[tuple[Line2D, str]]:
    """Draw the curves of a panel from their numbers x and y. Return the named lines and their names."""
    named = []
    for index, (curve, (x, y)) in enumerate(zip(curves, numbers, strict=True)):
        dots = {"marker": "o", "markersize": 3.5} if curve.marked else _dots(y)
        colour = curve_colour(index)
        if curve.smooth:
            ax.plot(x, y, color=colour, linewidth=0.6, alpha=FAINT, clip_on=False)
            y = smoothed(y)
        wide = 1.6 * (len(x) > 1)  # a single point has no line, in the legend neither
        (line,) = ax.plot(x, y, color=colour, linewidth=wide, clip_on=False, **dots)
        if curve.label:
            named.append((line, visible(curve.label)))
    return named


def smoothed(y: np.ndarray) -> np.ndarray:
    """Return the means of the numbers in a window that moves along them. Shapes: (N,) -> (N,).

    The window is symmetric, so that the curve is not delayed. It is narrower near the beginning, where the
    loss of a run falls fastest, and it is cut off at the end. Numbers that are not finite are left out, and
    the curve has gaps there.
    """
    n, known = len(y), np.isfinite(y)
    # sums[0, i] is the sum of the first i numbers, and sums[1, i] the number of those that are finite
    sums = np.pad(np.cumsum([np.where(known, y, 0), known], axis=1), ((0, 0), (1, 0)))  # (2, N + 1)
    places = np.arange(n)
    half = np.minimum(places, round(SMOOTHED * n / 2))
    starts, stops = places - half, np.minimum(places + half + 1, n)
    total, count = sums[:, stops] - sums[:, starts]
    means: np.ndarray = np.where(known, total, np.nan) / np.maximum(count, 1)
    return means


def _panel_numbers(panel: Panel, curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    x, y = _places(curve.x, f"x of {panel.name}"), array(curve.y, f"y of {panel.name}", 1)
    if len(x) != len(y):
        raise UserError(
            f"{panel.name}: x has {quantity(len(x), 'number')}, and y {len(y):,}: give equally many"
        )
    return x, y


# Costs against sizes, on logarithmic axes.

COST_WIDTH, COST_HEIGHT = 4.6, 2.9  # inches, of each panel's axes
COST_LEFT, COST_BOTTOM = 1.05, 0.6  # the space for the ticks and the axis label
COST_BETWEEN = 0.3  # the distance between panels


def cost_panels(
    costs: Mapping[str, Mapping[str, Sequence[float]]],
    sizes: Mapping[str, Sequence[float]],
    *,
    panels: Sequence[Sequence[tuple[str, str]]],
    title: str | None = None,
) -> Figure:
    """Draw rows of panels with costs over sizes, both on logarithmic axes, where a power law is a line.

    Args:
        costs: For each panel the curves by name, under the key "MEASURE SIZE", such as "seconds length".
        sizes: The sizes of the curves' points, by the name of the size.
        panels, title: The rows of panels, each a pair (measure, size), and a title above the picture.

    Raises:
        UserError: If a curve does not have one number above 0 for each size.
    """
    with drawing(title, *costs):
        rows, columns = len(panels), max(map(len, panels))
        across, down = COST_LEFT + COST_WIDTH + COST_BETWEEN, COST_BOTTOM + COST_HEIGHT + COST_BETWEEN
        figure = new_figure(columns * across, rows * down + PAD, title=title)
        for i, row in enumerate(panels):
            for j, (what, against) in enumerate(row):
                left, bottom = j * across + COST_LEFT, (rows - 1 - i) * down + COST_BOTTOM
                ax = axes_at(figure, left, bottom, COST_WIDTH, COST_HEIGHT)
                _cost_panel(ax, costs[f"{what} {against}"], sizes[against], what, against)
        return figure


def _cost_panel(
    ax: Axes, lines: Mapping[str, Sequence[float]], sizes: Sequence[float], what: str, against: str
) -> None:
    for name, values in lines.items():
        if len(values) != len(sizes) or min(values) <= 0:
            raise UserError(f"{name} needs {quantity(len(sizes), 'number')} above 0, one for each {against}")
    y, x = np.array(list(lines.values()), np.float64), np.array(sizes, np.float64)
    style: dict[str, Any] = {"xlabel": against, "ylabel": what, "xscale": "log", "yscale": "log"}
    curves(y, x, labels=list(lines), legend=True, ax=ax, **style)
    ax.set_xticks(sizes, labels=[f"{size:g}" for size in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
