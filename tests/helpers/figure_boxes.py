"""Functions that read schematics from their artists: boxes, signs and arrows."""

from dataclasses import dataclass

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

CLOSE = 1e-6  # inches


@dataclass(frozen=True)
class Shape:
    """A box with its label, a frame without one, or a circle with its sign."""

    label: str
    left: float
    bottom: float
    right: float
    top: float
    edge_width: float
    alpha: float | None
    round: bool = False

    @property
    def x(self):
        return (self.left + self.right) / 2

    @property
    def y(self):
        return (self.bottom + self.top) / 2

    def on_edge(self, point):
        """Return whether a point lies on the outline."""
        x, y = point
        if self.round:
            return abs(np.hypot(x - self.x, y - self.y) - (self.right - self.left) / 2) < CLOSE
        inside = self.left - CLOSE <= x <= self.right + CLOSE and self.bottom - CLOSE <= y <= self.top + CLOSE
        sides = (x - self.left, self.right - x, y - self.bottom, self.top - y)
        return inside and min(map(abs, sides)) < CLOSE


@dataclass(frozen=True)
class Arrow:
    points: np.ndarray  # (N, 2)
    dashed: bool

    @property
    def ends(self):
        return self.points[0], self.points[-1]


def shapes(figure):
    """Return boxes and signs in the order of their centres, from the bottom up, without frames."""
    found = []
    labels = {tuple(np.round(t.get_position(), 6)): t.get_text() for t in figure.axes[0].texts}
    for patch in figure.axes[0].patches:
        if isinstance(patch, FancyBboxPatch):
            left, bottom, width, height = patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height()
        elif isinstance(patch, Circle):
            (x, y), radius = patch.center, patch.radius
            left, bottom, width, height = x - radius, y - radius, 2 * radius, 2 * radius
        else:
            continue
        label = labels.get(tuple(np.round((left + width / 2, bottom + height / 2), 6)))
        if label is not None:
            style = (patch.get_linewidth(), patch.get_alpha())
            ends = (left, bottom, left + width, bottom + height)
            found.append(Shape(label, *ends, *style, isinstance(patch, Circle)))
    return sorted(found, key=lambda shape: (round(shape.y, 6), shape.x))


def arrows(figure):
    return [
        Arrow(
            np.array(patch._path_original.vertices),
            patch.get_linestyle() not in ("-", "solid"),
        )
        for patch in figure.axes[0].patches
        if isinstance(patch, FancyArrowPatch)
    ]
