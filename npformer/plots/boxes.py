"""Boxes and arrows for schematics of the architecture. One unit is one inch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path

from npformer.errors import UserError, quantity
from npformer.plots.layout import root, sheet
from npformer.plots.palette import COLOURS, ink_on
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import LABEL, TEXT, drawing, text_size

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle with a label, given by its centre. `colour` is a role of the palette, such as "norm"."""

    label: str
    x: float
    y: float
    width: float = 1.7
    height: float = 0.42
    colour: str = "plain"
    size: float = LABEL

    @property
    def top(self) -> Point:
        """The middle of the upper side."""
        return self.x, self.y + self.height / 2

    @property
    def bottom(self) -> Point:
        """The middle of the lower side."""
        return self.x, self.y - self.height / 2

    @property
    def left(self) -> Point:
        """The middle of the left side."""
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> Point:
        """The middle of the right side."""
        return self.x + self.width / 2, self.y

    def on_bottom(self, share: float) -> Point:
        """Return a point of the lower side: its left end for share 0, its right end for share 1."""
        return self.x + (share - 0.5) * self.width, self.y - self.height / 2


def draw_box(ax: Axes, box: Box, *, highlight: bool = False, faded: bool = False) -> Box:
    """Draw a box and return it.

    Args:
        ax: The axes.
        box: The box.
        highlight: Whether the box has a thick orange border.
        faded: Whether the box is pale.

    Raises:
        UserError: If the label is larger than the box.
    """
    width, height = text_size(box.label, box.size, math=True)
    if width > box.width - 0.04 or height > box.height:
        raise UserError(
            f"the label {box.label!r} needs {width:.2f} × {height:.2f} inches, and its box has "
            f"{box.width:.2f} × {box.height:.2f}: make the box larger, or break the label with \\n"
        )
    face = colour_of(box.colour)
    border, thick = (COLOURS["highlight"], 2.8) if highlight else ("#5f6368", 1.1)
    rounded(
        ax,
        (box.x - box.width / 2, box.y - box.height / 2),
        (box.width, box.height),
        facecolor=face,
        edgecolor=border,
        linewidth=thick,
        alpha=0.35 if faded else 1,
        zorder=3,
    )
    ink = COLOURS["faint"] if faded else ink_on(face)
    style: dict[str, Any] = {"ha": "center", "va": "center", "linespacing": 1.15, "zorder": 4}
    ax.text(box.x, box.y, box.label, size=box.size, color=ink, **style)
    return box


def rounded(ax: Axes, corner: Point, size: Point, *, radius: float = 0.07, **style: Any) -> None:
    """Draw a rectangle with round corners from its lower left corner and its size (width, height).

    Args:
        ax: The axes.
        corner: The lower left corner.
        size: The width and the height.
        radius: The radius of the round corners.
        style: Settings of matplotlib's FancyBboxPatch.
    """
    shape = f"round,pad=0,rounding_size={radius}"
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, clip_on=False, **style))


def frame(
    ax: Axes,
    left: float,
    bottom: float,
    width: float,
    height: float,
    *,
    colour: str = "plain",
    label: str = "",
    repeat: str = "",
    repeat_side: str = "left",
) -> None:
    """Draw a large rectangle behind other boxes.

    Args:
        ax: The axes.
        left: The left edge.
        bottom: The lower edge.
        width: The width.
        height: The height.
        colour: A role of the palette.
        label: A text in the upper left corner.
        repeat: A text beside the frame, such as "6 ×".
        repeat_side: The side of that text, "left" or "right".
    """
    style: dict[str, Any] = {
        "facecolor": colour_of(colour),
        "edgecolor": "#8a8f94",
        "linewidth": 1.2,
        "zorder": 0.5,
    }
    rounded(ax, (left, bottom), (width, height), radius=0.12, **style)
    if label:
        ax.text(left + 0.1, bottom + height - 0.09, label, size=TEXT, va="top", weight="bold")
    if repeat:
        x, side = (left - 0.1, "right") if repeat_side == "left" else (left + width + 0.1, "left")
        ax.text(x, bottom + height / 2, repeat, size=14, ha=side, va="center")


def stack(ax: Axes, box: Box, count: int, *, shown: int = 3, offset: float = 0.09) -> Box:
    """Draw equal boxes behind each other with "× count" at the right, and return the one in front.

    Args:
        ax: The axes.
        box: The box in front.
        count: The number of boxes that the label gives.
        shown: The largest number of boxes that are drawn.
        offset: The distance from one box to the next behind it.
    """
    for index in range(min(shown, count) - 1, 0, -1):
        corner = (box.x - box.width / 2 + index * offset, box.y - box.height / 2 + index * offset)
        back = Rectangle(corner, box.width, box.height, facecolor=colour_of(box.colour), edgecolor="#5f6368")
        back.set(zorder=2.9 - 0.1 * index, clip_on=False)
        ax.add_patch(back)
    behind = (min(shown, count) - 1) * offset
    ax.text(box.right[0] + behind + 0.08, box.y, f"× {count}", size=12, va="center")
    return draw_box(ax, box)


def sign(
    ax: Axes, x: float, y: float, text: str = "+", *, radius: float = 0.13, colour: str = "plain"
) -> Box:
    """Draw a circle with a sign, such as + where two arrows add, and return it as a box for arrows.

    Args:
        ax: The axes.
        x: The horizontal centre.
        y: The vertical centre.
        text: The sign.
        radius: The radius.
        colour: A role of the palette.
    """
    circle = Circle((x, y), radius, facecolor=colour_of(colour), edgecolor=COLOURS["ink"], linewidth=1.2)
    circle.set(zorder=3, clip_on=False)
    ax.add_patch(circle)
    ax.text(x, y, text, size=13, ha="center", va="center_baseline", zorder=4)
    return Box("", x, y, 2 * radius, 2 * radius)


def arrow(
    ax: Axes,
    *points: Point,
    dashed: bool = False,
    colour: str = "ink",
    label: str = "",
    label_side: str = "right",
    head: bool = True,
    width: float = 1.4,
) -> None:
    """Draw an arrow through points, with straight segments.

    Args:
        ax: The axes.
        points: Two or more points.
        dashed: Whether the line is dashed, as for residual connections.
        colour: A role of the palette.
        label: A text beside the middle of the longest segment, or above it if the segment is horizontal.
        label_side: The side of that text if the segment is not horizontal, "right" or "left".
        head: Whether the line ends in an arrow head.
        width: The width of the line in points.

    Raises:
        UserError: If there are fewer than two points.
    """
    if len(points) < 2:
        raise UserError(f"an arrow has {quantity(len(points), 'point')}: give at least two points")
    line = FancyArrowPatch(
        path=Path(list(points)),
        arrowstyle="-|>" if head else "-",
        mutation_scale=11,
        color=colour_of(colour),
        linewidth=width,
        linestyle=(0, (4, 2.5)) if dashed else "-",
        joinstyle="round",
        capstyle="butt",
    )
    line.set(zorder=2, clip_on=False)
    ax.add_patch(line)
    if label:
        _label(ax, points, label, label_side)


def _label(ax: Axes, points: Sequence[Point], label: str, side: str) -> None:
    pairs = list(pairwise(points))
    (x0, y0), (x1, y1) = max(
        pairs, key=lambda pair: abs(pair[0][0] - pair[1][0]) + abs(pair[0][1] - pair[1][1])
    )
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    if abs(y1 - y0) < abs(x1 - x0):
        ax.text(x, y + 0.05, label, size=TEXT, ha="center", va="bottom")
    else:
        shift, align = (0.07, "left") if side == "right" else (-0.07, "right")
        ax.text(x + shift, y, label, size=TEXT, ha=align, va="center")


def elbow(start: Point, end: Point, *, level_first: bool = True) -> list[Point]:
    """Return the points of an arrow with one right angle.

    Args:
        start: The start of the arrow.
        end: The end of the arrow.
        level_first: Whether the first segment is horizontal.
    """
    corner = (end[0], start[1]) if level_first else (start[0], end[1])
    return [start, corner, end]


def around(start: Point, end: Point, x: float) -> list[Point]:
    """Return the points of a residual connection: from `start` sideways to x, up, and sideways to `end`.

    Args:
        start: The start of the arrow.
        end: The end of the arrow.
        x: The horizontal position of the vertical segment.
    """
    return [start, (x, start[1]), (x, end[1]), end]


def tower(ax: Axes, boxes: Sequence[Box], *, into: Point | None = None, out: Point | None = None) -> None:
    """Draw boxes and the arrows that lead from each box to the one above it.

    Args:
        ax: The axes.
        boxes: The boxes, from the bottom up.
        into: The start of an arrow into the first box, or None for no arrow.
        out: The end of an arrow out of the last box, or None for no arrow.
    """
    for box in boxes:
        draw_box(ax, box)
    if into is not None:
        arrow(ax, into, boxes[0].bottom)
    for below, above in pairwise(boxes):
        arrow(ax, below.top, above.bottom)
    if out is not None:
        arrow(ax, boxes[-1].top, out)


def layer_pair(*, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw an encoder layer beside a decoder layer, as an example of these boxes.

    Returns:
        The figure.

    Raises:
        UserError: If it does not fit on the given axes.

    Source: Vaswani et al. 2017, figure 1.
    """
    with drawing(title):
        ax = sheet(6.4, 3.6, ax=ax, title=title, what="a picture of two layers")
        frame(ax, 0.1, 0.45, 2.4, 2.7, colour="encoder", label="encoder layer")
        frame(ax, 3.9, 0.45, 2.4, 2.7, colour="decoder", label="decoder layer")
        encoder = [
            Box("self-attention", 1.3, 1.0, colour="attention"),
            Box("feed-forward", 1.3, 2.4, colour="feed_forward"),
        ]
        decoder = [
            Box("self-attention", 5.1, 1.0, colour="attention"),
            Box("encoder-decoder\nattention", 5.1, 1.7, colour="attention"),
            Box("feed-forward", 5.1, 2.4, colour="feed_forward"),
        ]
        tower(ax, encoder, into=(1.3, 0.1), out=(1.3, 3.55))
        tower(ax, decoder, into=(5.1, 0.1), out=(5.1, 3.55))
        to_decoder = [(1.3, 3.32), (3.55, 3.32), (3.55, 1.7), decoder[1].left]
        arrow(ax, *to_decoder)
        ax.text(3.48, 1.7, "keys, values", ha="right", va="center")
        return root(ax)
