"""Curves over positions or steps, each named at its end."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from npformer.errors import UserError
from npformer.plots.layout import PAD, array, axes_at, new_figure, put_title, root, size_of, title_room, words
from npformer.plots.palette import head_colour
from npformer.plots.style import LABEL, TEXT, drawing, line_height, widest, wrapped

WIDTH, HEIGHT = 5.6, 3.4  # inches, of the axes
SAMPLE = 0.26  # of a curve's dashes, beside its name
DASHES: tuple = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))  # a second way to tell curves apart
ORDER = (4, 0, 1, 2, 5, 3, 8, 10, 7, 9, 6, 11, 13, 14, 12, 15)  # of the heads' colours: blue first


def curves(
    y,
    x=None,
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
    """One curve for each row of y over x, its name at its right end, or in a legend.

    x is 0, 1 .. if left out. xscale and yscale are "linear" or "log". Where y is NaN the curve has a gap.
    Shapes: y (P,) or (N, P), x (P,); labels N words.
    Errors: UserError for other shapes, or where the names do not fit one above another.
    """
    values, places = _numbers(y, x)
    if not {xscale, yscale} <= {"linear", "log"}:
        raise UserError(f"the scales are {xscale!r} and {yscale!r}: choose linear or log")
    with drawing(labels, xlabel, ylabel, title):
        names = [] if labels is None else words(labels, len(values), "labels")
        if ax is None:
            ax = _own_axes([] if legend else names, ylabel, title)
        elif title:
            ax.set_title(wrapped(title, size_of(ax)[0]))
        lines = [
            ax.plot(places, row, color=curve_colour(i), linestyle=DASHES[i % 4], linewidth=1.8)[0]
            for i, row in enumerate(values)
        ]
        ax.set(xlabel=xlabel, ylabel=ylabel, xscale=xscale, yscale=yscale)
        dress(ax, places, {ax.xaxis: xscale, ax.yaxis: yscale})
        if names and legend:
            put_legend(ax, lines, names)
        elif names:
            _name_ends(ax, lines, names, yscale)
        return root(ax)


def _numbers(y, x):
    """Shapes: y (P,) or (N, P), x (P,) or None -> (N, P), (P,)."""
    values = array(y, "y", 1 if np.ndim(y) == 1 else 2)
    values = values.reshape(-1, values.shape[-1])
    places = np.arange(values.shape[1]) if x is None else array(x, "x", 1)
    if len(places) != values.shape[1]:
        raise UserError(f"x has {len(places)} numbers, and y {values.shape[1]} columns")
    return values, places


def curve_colour(index: int) -> str:
    """The colour of a curve: the heads' colours, in an order in which neighbours differ most."""
    return head_colour(ORDER[index % len(ORDER)])


def _own_axes(names, ylabel, title) -> Axes:
    right = widest(names, TEXT) + SAMPLE + 0.25 if names else 0.2
    left = 0.62 + (line_height(LABEL) if ylabel else 0)
    title = wrapped(title, WIDTH + right)
    _, up = title_room(title)
    figure = new_figure(PAD + left + WIDTH + right, 0.55 + HEIGHT + 2 * PAD + up)
    if title:
        put_title(figure, title)
    return axes_at(figure, PAD + left, 0.55, WIDTH, HEIGHT)


def dress(ax, places, scales):
    """A light grid, ticks at whole numbers where x is whole, and no room left and right of the curves."""
    ax.grid(color="#e3e5e8", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TEXT)
    for axis, scale in scales.items():
        if scale == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))  # exponents would be tiny
            axis.set_minor_formatter(NullFormatter())
    xscale = scales[ax.xaxis]
    if xscale == "linear" and places.dtype.kind in "iu":
        ax.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
    low, high = float(places.min()), float(places.max())
    if high > low and (low > 0 or xscale == "linear"):
        ax.set_xlim(low, high)


def put_legend(ax, lines, names):
    """The names beside a sample of each line; UserError where they do not fit into the axes."""
    width, height = size_of(ax)
    room = line_height(TEXT) * 1.3
    if len(names) * room > height or widest(names, TEXT) + 0.6 > width:
        raise UserError(f"{len(names)} names do not fit in a legend at 8 points: draw fewer curves")
    made = ax.legend(
        lines, names, loc="best", handlelength=2.5, frameon=True, framealpha=0.9, edgecolor="none"
    )
    for text in made.get_texts():
        text.set_parse_math(False)


def _name_ends(ax, lines, names, yscale):
    """Write each name beside its curve's last point, moved up or down until none touches another."""
    width, height = size_of(ax)
    room = line_height(TEXT)
    if len(names) * room > height:
        raise UserError(
            f"{len(names)} names do not fit beside axes {height:.1f} inches high at 8 points: "
            "draw fewer curves"
        )
    low, high = ax.get_ylim()
    ends = np.array([_last(line.get_ydata()) for line in lines], np.float64)  # (N,)
    if yscale == "log":
        low, high, ends = np.log(low), np.log(high), np.log(np.maximum(ends, low))
    wanted = np.clip((ends - low) / (high - low), 0, 1) * height
    for line, name, at, want in zip(lines, names, spread(wanted, room, height), wanted, strict=True):
        y, style = at / height, {"color": line.get_color(), "transform": ax.transAxes, "clip_on": False}
        ax.plot([1, 1 + 0.14 / width], [want / height, y], linewidth=0.7, label="_leader", **style)
        sample = [1 + 0.14 / width, 1 + (0.14 + SAMPLE) / width]
        ax.plot(sample, [y, y], linewidth=1.8, linestyle=line.get_linestyle(), label="_sample", **style)
        x = 1 + (0.2 + SAMPLE) / width
        ax.text(x, y, name, va="center_baseline", transform=ax.transAxes, parse_math=False)


def _last(values):
    """The last number that is not NaN; 0 where there is none."""
    finite = np.asarray(values)[np.isfinite(values)]
    return finite[-1] if len(finite) else 0.0


def spread(wanted, room: float, height: float) -> np.ndarray:
    """Heights as near to the wanted ones as leave `room` between any two, inside 0 .. height.

    Shapes: wanted (N,) -> (N,).
    """
    order = np.argsort(wanted, kind="stable")
    at = np.asarray(wanted, np.float64)[order]
    at = np.clip(at, room / 2, height - room / 2)
    for i in range(1, len(at)):  # upwards
        at[i] = max(at[i], at[i - 1] + room)
    at[-1] = min(at[-1], height - room / 2)
    for i in range(len(at) - 2, -1, -1):  # and down again from the upper edge
        at[i] = min(at[i], at[i + 1] - room)
    result = np.empty_like(at)
    result[order] = at
    return result
