"""Boxes and arrows for schematics of the architecture. One unit is one inch."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from npformer.errors import UserError, quantity
from npformer.plots.palette import COLOURS, ink_on
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import LABEL, text_size

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
        ax, box: The axes and the box.
        highlight, faded: Whether the box has a thick orange border, and whether it is pale.

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
    style: dict[str, Any] = {"facecolor": face, "edgecolor": border, "linewidth": thick, "zorder": 3}
    corner, alpha = (box.x - box.width / 2, box.y - box.height / 2), 0.35 if faded else 1
    rounded(ax, corner, (box.width, box.height), alpha=alpha, **style)
    ink = COLOURS["faint"] if faded else ink_on(face)
    style = {"ha": "center", "va": "center", "linespacing": 1.15, "zorder": 4}
    ax.text(box.x, box.y, box.label, size=box.size, color=ink, **style)
    return box


def rounded(ax: Axes, corner: Point, size: Point, *, radius: float = 0.07, **style: Any) -> None:
    """Draw a rectangle with round corners from its lower left corner and its size (width, height).

    Args:
        ax, corner, size: The axes, the lower left corner, and the width and the height.
        radius: The radius of the round corners.
        style: Settings of matplotlib's FancyBboxPatch.
    """
    shape = f"round,pad=0,rounding_size={radius}"
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=shape, clip_on=False, **style))


def arrow(
    ax: Axes, *points: Point, dashed: bool = False, colour: str = "ink", head: bool = True, width: float = 1.4
) -> None:
    """Draw an arrow through points, with straight segments.

    Args:
        ax, points: The axes, and two or more points.
        dashed, head: Whether the line is dashed, as for residual connections, and ends in an arrow head.
        colour, width: A role of the palette, and the width of the line in points.

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


def around(start: Point, end: Point, x: float) -> list[Point]:
    """Return the points of a residual connection: from `start` sideways to x, up, and sideways to `end`.

    Args:
        start, end: The ends of the arrow.
        x: The horizontal position of the vertical segment.
    """
    return [start, (x, start[1]), (x, end[1]), end]
