"""Functions that read matrices from a drawn board: the numbers in the cells, and the names beside them."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

GAP = 0.07  # the distance between cells and their name


class Cells(NamedTuple):
    """A grid as it is drawn."""

    values: np.ndarray  # (N, M), NaN where a cell holds no number
    left: float
    bottom: float
    right: float
    top: float
    faces: np.ndarray  # (N, M, 3)


def written_number(text):
    """Convert text such as .88, −.42 or 112 to a float."""
    return float(text.replace("−", "-"))


def as_text(values):
    """Return a vector as captions write it, such as [.88  −.42]."""
    return "[" + "  ".join(f"{v:.2f}".replace("0.", ".", 1).replace("-", "−") for v in values) + "]"


def texts(figure):
    """Return every text on the first axes with its position."""
    return [(t.get_text(), *t.get_position()) for t in figure.axes[0].texts]


def grids(figure):
    """Return every grid in drawing order."""
    places = {(round(x, 6), round(y, 6)): text for text, x, y in texts(figure)}
    found = []
    for collection in figure.axes[0].collections:
        corners = np.array([path.vertices[:4] for path in collection.get_paths()])  # (N·M, 4, 2)
        centres = corners.mean(1)
        columns = len(np.unique(centres[:, 0].round(6)))
        rows = len(np.unique(centres[:, 1].round(6)))
        order = np.lexsort((centres[:, 0].round(6), -centres[:, 1].round(6)))  # row by row, as on paper
        numbers = [written_number(places.get((round(x, 6), round(y, 6)), "nan")) for x, y in centres[order]]
        (left, bottom), (right, top) = corners.min((0, 1)), corners.max((0, 1))
        faces = collection.get_facecolors()[order, :3]
        found.append(
            Cells(
                np.reshape(numbers, (rows, columns)),
                left,
                bottom,
                right,
                top,
                faces.reshape(rows, columns, 3),
            )
        )
    return found


def named(figure):
    """Return the grids by the names above, below, left or right of their middle."""
    result = defaultdict(list)
    for cells in grids(figure):
        x, y = (cells.left + cells.right) / 2, (cells.bottom + cells.top) / 2
        beside = [
            (x, cells.top + GAP),
            (x, cells.bottom - GAP),
            (cells.left - GAP, y),
            (cells.right + GAP, y),
        ]
        for text, *place in texts(figure):
            if "$" in text and any(np.allclose(place, at, atol=1e-6) for at in beside):
                result[text.replace("$", "").replace("{", "").replace("}", "")].append(cells)
    return result


def shows(cells, matrix, decimals=2):
    """Return whether a grid shows a matrix, up to the rounding of its numbers."""
    matrix = np.atleast_2d(matrix)
    same = cells.values.shape == matrix.shape
    return same and bool(np.allclose(cells.values, matrix, rtol=0, atol=0.5 * 10**-decimals + 1e-9))


def row_words(figure, cells):
    """Return the words at the left of a grid's rows, from the top."""
    step = (cells.top - cells.bottom) / len(cells.values)
    heights = cells.top - step * (np.arange(len(cells.values)) + 0.5)
    at = {(round(x, 6), round(y, 6)): text for text, x, y in texts(figure)}
    return [at.get((round(cells.left - GAP, 6), round(y, 6))) for y in heights]
