"""Reads matrices back from a drawn board: the numbers that stand in its cells, and the name beside them."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

GAP = 0.07  # between cells and their name, as drawn


class Cells(NamedTuple):
    """A grid as drawn."""

    values: np.ndarray  # (N, M), NaN where a cell holds no number
    left: float
    bottom: float
    right: float
    top: float
    faces: np.ndarray  # (N, M, 3)


def written_number(text):
    """.88, −.42, 112 as a float."""
    return float(text.replace("−", "-"))


def texts(figure):
    """Every text with its place, on the first axes."""
    return [(t.get_text(), *t.get_position()) for t in figure.axes[0].texts]


def grids(figure):
    """Every grid, in the order drawn."""
    places = {(round(x, 6), round(y, 6)): text for text, x, y in texts(figure)}
    found = []
    for collection in figure.axes[0].collections:
        corners = np.array([path.vertices[:4] for path in collection.get_paths()])  # (N·M, 4, 2)
        centres = corners.mean(1)
        columns = len(np.unique(centres[:, 0].round(6)))
        rows = len(np.unique(centres[:, 1].round(6)))
        order = np.lexsort((centres[:, 0].round(6), -centres[:, 1].round(6)))  # as on paper, by rows
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
    """The grids by the name that stands above, below, left or right of their middle."""
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
    """Whether a grid shows a matrix, to the rounding of its numbers."""
    matrix = np.atleast_2d(matrix)
    same = cells.values.shape == matrix.shape
    return same and bool(np.allclose(cells.values, matrix, rtol=0, atol=0.5 * 10**-decimals + 1e-9))


def row_words(figure, cells):
    """The words at the left of a grid's rows, from above."""
    step = (cells.top - cells.bottom) / len(cells.values)
    heights = cells.top - step * (np.arange(len(cells.values)) + 0.5)
    at = {(round(x, 6), round(y, 6)): text for text, x, y in texts(figure)}
    return [at.get((round(cells.left - GAP, 6), round(y, 6))) for y in heights]
