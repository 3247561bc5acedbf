"""A page of panels, each with curves of its own over one common axis: how a training run went."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from npformer.errors import UserError
from npformer.plots.curves import curve_colour, dress, put_legend
from npformer.plots.layout import PAD, array, axes_at, new_figure, put_title, title_room
from npformer.plots.style import LABEL, drawing, printable, wrapped

WIDTH, HEIGHT = 4.6, 2.3  # inches, of the axes of a panel
LEFT, BELOW = 0.62, 0.5  # for ticks and their label
ABOVE = 0.32  # for the panel's name


class Curve(NamedTuple):
    """Numbers over x; marked: a dot at each, as where there are few."""

    x: Any  # (N,)
    y: Any  # (N,)
    label: str = ""
    marked: bool = False


class Panel(NamedTuple):
    """Curves that share an axis, and what it measures; from_zero: the axis begins there."""

    name: str
    curves: Sequence[Curve]
    from_zero: bool = False


def curve_page(
    panels: Sequence[Panel], *, xlabel: str = "step", title: str | None = None, columns: int = 2
) -> Figure:
    """The panels in rows, over the same stretch of x; curves with labels are told apart by a legend.

    Errors: UserError for a panel without curves, a curve whose x and y differ in length, or too many panels.
    """
    sides = [[_numbers(panel, curve) for curve in panel.curves] for panel in panels]
    if not panels or not all(sides):
        raise UserError("a page of curves needs panels, and each panel a curve")
    low = min(x.min() for curves in sides for x, _ in curves)
    high = max(x.max() for curves in sides for x, _ in curves)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    texts = [(panel.name, [curve.label for curve in panel.curves]) for panel in panels]
    with drawing(texts, xlabel, title):
        width = columns * (LEFT + WIDTH + PAD) + PAD
        height = rows * (ABOVE + HEIGHT + BELOW)
        title = wrapped(title, width - 2 * PAD)
        figure = new_figure(width, height + PAD + title_room(title)[1], "this page of curves")
        for index, (panel, numbers) in enumerate(zip(panels, sides, strict=True)):
            row, column = divmod(index, columns)
            bottom = height - (row + 1) * (ABOVE + HEIGHT + BELOW) + BELOW
            ax = axes_at(figure, PAD + LEFT + column * (LEFT + WIDTH + PAD), bottom, WIDTH, HEIGHT)
            _draw(ax, panel, numbers, (low, high))
            ax.set_xlabel(xlabel)
        if title:
            put_title(figure, title)
    return figure


def _numbers(panel: Panel, curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    x, y = array(curve.x, f"x of {panel.name}", 1), array(curve.y, f"y of {panel.name}", 1)
    if len(x) != len(y):
        raise UserError(f"{panel.name}: x has {len(x)} numbers, and y {len(y)}")
    return x, y


def _draw(ax: Axes, panel: Panel, numbers, ends: tuple[float, float]) -> None:
    """The curves of one panel."""
    named = []
    for index, (curve, (x, y)) in enumerate(zip(panel.curves, numbers, strict=True)):
        few = curve.marked or len(x) == 1
        dots: dict[str, Any] = {"marker": "o", "markersize": 3.5} if few else {}
        (line,) = ax.plot(x, y, color=curve_colour(index), linewidth=1.6, clip_on=False, **dots)
        if curve.label:
            named.append((line, printable(curve.label)))
    dress(ax, np.array(ends, np.float64), {ax.xaxis: "linear", ax.yaxis: "linear"})
    if panel.from_zero:
        ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))
    # as text in the figure's own way: a name is no formula
    up = 1 + (ABOVE / 2) / HEIGHT
    ax.text(
        0, up, panel.name, size=LABEL, weight="bold", va="center", transform=ax.transAxes, parse_math=False
    )
    if named:
        put_legend(ax, *zip(*named, strict=True))
