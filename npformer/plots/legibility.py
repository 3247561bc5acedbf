"""A check that all text in a figure can be read, for tests and for authors of new pictures."""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from npformer.plots.style import MIN_SIZE

SLACK = 0.6  # pixels by which boxes may overlap
SCRIPT = 0.7  # size of an exponent, relative to its base


class Line(NamedTuple):
    """A line of text as it was drawn."""

    text: str
    size: float  # the size of its smallest letters, in points
    corners: np.ndarray  # (4, 2) pixels, the box of its ink, y downwards


class _Recorder(RendererAgg):
    """A renderer that records the place and the size of every text."""

    def __init__(self, width: float, height: float, dpi: float) -> None:
        initialize: Any = super().__init__  # matplotlib leaves it untyped
        initialize(width, height, dpi)
        self.lines: list[Line] = []

    def draw_text(
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Record the line of text."""
        renderer: Any = self  # matplotlib leaves its methods untyped
        width, height, descent = renderer.get_text_width_height_descent(s, prop, ismath)
        along = np.array([math.cos(math.radians(angle)), -math.sin(math.radians(angle))])
        up = np.array([along[1], -along[0]])
        start = np.array([x, y]) - descent * up
        corners = np.array(
            [start, start + width * along, start + width * along + height * up, start + height * up]
        )
        size = prop.get_size_in_points()
        if ismath and any(sign in s for sign in "^_"):
            size *= SCRIPT
        if s.strip() and width > 0:
            self.lines.append(Line(s, size, corners))


def text_problems(figure: Figure) -> list[str]:
    """Return a sentence for each text that cannot be read.

    Such a text is too small, overlaps another text, extends beyond the figure, or has characters that the
    font lacks.

    Returns:
        The sentences. The list is empty if all text can be read.
    """
    canvas = FigureCanvasAgg(figure)
    width, height = canvas.get_width_height()
    recorder = _Recorder(width, height, figure.dpi)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # an older matplotlib with a newer pyparsing
        figure.draw(recorder)
    lines = recorder.lines
    problems = [f"warning: {warning.message}" for warning in caught]
    problems += [f"{line.text!r} has {line.size:.1f} points" for line in lines if line.size < MIN_SIZE - 1e-6]
    problems += [f"{line.text!r} exceeds the picture" for line in lines if _leaves(line, width, height)]
    problems += [f"{lines[i].text!r} and {lines[j].text!r} overlap" for i, j in _overlaps(lines)]
    return problems


def _leaves(line: Line, width: float, height: float) -> bool:
    low, high = line.corners.min(0), line.corners.max(0)
    return bool((low < -SLACK).any() or (high > np.array([width, height]) + SLACK).any())


def _overlaps(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield pairs of lines whose boxes, rotated as they are drawn, overlap by more than the slack."""
    if not lines:
        return
    low = np.array([line.corners.min(0) for line in lines]) + SLACK / 2  # (N, 2)
    high = np.array([line.corners.max(0) for line in lines]) - SLACK / 2
    meet = (low[:, None] < high[None]).all(-1) & (low[None] < high[:, None]).all(-1)  # (N, N)
    for i, j in np.argwhere(np.triu(meet, 1)):
        if not _apart(lines[i].corners, lines[j].corners):
            yield int(i), int(j)


def _apart(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether a side of one of two rectangles separates them. Shapes: (4, 2) each."""
    for corners in (first, second):
        for side in (corners[1] - corners[0], corners[2] - corners[1]):
            axis = side / max(np.linalg.norm(side), 1e-9)
            a, b = first @ axis, second @ axis
            if a.max() < b.min() + SLACK or b.max() < a.min() + SLACK:
                return True
    return False
