"""A check that all text in a figure can be read, for tests and for authors of new pictures."""

import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from npformer.plots.raster import TextRecorder
from npformer.plots.style import MIN_SIZE

SLACK = 0.6  # pixels by which boxes may overlap
SCRIPT = 0.7  # size of an exponent, relative to its base


class Line(NamedTuple):
    """A line of text as it was drawn."""

    text: str
    size: float  # the size of its smallest letters, in points
    corners: np.ndarray  # (4, 2) pixels, the box of its ink, y downwards


def text_problems(figure: Figure) -> list[str]:
    """Return a sentence for each text that cannot be read.

    Such a text is too small, overlaps another text, extends beyond the figure, or has characters that the
    font lacks.

    Returns:
        The sentences. The list is empty if all text can be read.
    """
    canvas = FigureCanvasAgg(figure)
    width, height = canvas.get_width_height()
    recorder = TextRecorder(width, height, figure.dpi)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # an older matplotlib with a newer pyparsing
        figure.draw(recorder)
    lines = [
        Line(text, font.get_size_in_points() * (SCRIPT if formula and set("^_") & set(text) else 1), corners)
        for text, font, formula, _, _, corners in recorder.lines
        if text.strip() and (corners[0] != corners[1]).any()
    ]
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
