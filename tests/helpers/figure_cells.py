"""Functions that read a drawn figure: the numbers in its cells, the names beside them, and its text."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from npformer.learn import figures
from npformer.plots.palette import colour

GAP = 0.07  # the distance between cells and their name


class Cells(NamedTuple):
    """A grid as it is drawn, its first row at the top."""

    values: np.ndarray  # (N, M): the numbers shown in the cells, NaN for a cell without one
    faces: np.ndarray  # (N, M, 3)
    left: float
    bottom: float
    right: float
    top: float

    def painted(self, role):
        """Return the cells that have the colour of this role."""
        return np.isclose(self.faces, to_rgb(colour(role)), atol=1e-3).all(-1)


_drawn = {}
NO_MODELS = figures.Studio(folder=Path(os.devnull) / "models")  # a folder in which no model can be trained


def draw(id, studio=NO_MODELS, **changes):
    """Return a figure with its caption, which is drawn once for all tests. No test may change it."""
    key = (id, studio, repr(changes))
    if key not in _drawn:
        _drawn[key] = figures.draw(id, studio, **changes)
    return _drawn[key]


def picture(id, *studio, **changes):
    """Return the figure without its caption."""
    return draw(id, *studio, **changes).figure


def number(text):
    """Return the number in a cell, such as −.42 or ∞, or NaN for a word."""
    try:
        return float(text.replace("−", "-").replace("∞", "inf"))
    except ValueError:
        return np.nan


def texts(figure):
    """Return all text on the axes of a figure, then that on the figure itself."""
    everything = [*(text for ax in figure.axes for text in ax.texts), *figure.texts]
    return [text.get_text() for text in everything if text.get_text()]


def places(figure):
    """Return every text on the first axes as (text, x, y)."""
    return [(t.get_text(), *t.get_position()) for t in figure.axes[0].texts]


def grids(figure):
    """Return every grid of cells in drawing order."""
    ax = figure.axes[0]
    return [read_grid(c, places(figure)) for c in ax.collections if isinstance(c, PolyCollection)]


def read_grid(collection, labels):
    """Return the cells by their positions, not by the order in which they were drawn."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])  # (N·M, 4, 2)
    centres = corners.mean(1)
    columns = np.unique(centres[:, 0].round(4))
    rows = np.unique(centres[:, 1].round(4))[::-1]
    column = np.abs(centres[:, 0, None] - columns).argmin(1)
    row = np.abs(centres[:, 1, None] - rows).argmin(1)
    values, faces = np.full((len(rows), len(columns)), np.nan), np.empty((len(rows), len(columns), 3))
    faces[row, column] = collection.get_facecolor()[:, :3]
    for text, *place in labels:
        near = np.abs(centres - place).max(1)
        if near.min() < 0.01:
            values[row[near.argmin()], column[near.argmin()]] = number(text)
    return Cells(values, faces, *corners.min((0, 1)), *corners.max((0, 1)))
