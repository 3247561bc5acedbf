"""Rows of dots, one a word, and lines between rows: how attention carries words from layer to layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from npformer.errors import UserError
from npformer.plots.layout import MAX_SIDE, PAD, array, root, sheet, word_line, words
from npformer.plots.palette import COLOURS, edge
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import SMALL, TEXT, drawing, line_height, text_size

WIDEST = 5.0  # points, the line of a weight of 1, as in word_lines
FAINTEST = 0.01  # weights under it are not drawn
PITCH = 0.33  # from dot to dot, in inches; less where the sentence is long
RISE = 0.5  # from row to row
DOT = 0.075  # radius
GAP = 0.1
NAME = 0.18  # from the last dot to the row's name


@dataclass(frozen=True)
class Row:
    """A row of dots. left counts dots from the picture's left edge, level rows from below.

    Its words stand under it or, with above=True, over it. lit says how many dots are filled in, from the
    left; the others are only outlined, and have room for words that are not there yet. bold is the number
    of a word.
    """

    name: str
    count: int
    left: float
    level: float
    colour: str = "r"
    words: Sequence[str] | None = None
    above: bool = False
    lit: int | None = None
    bold: int | None = None
    name_side: str = "left"


@dataclass(frozen=True)
class Flow:
    """Lines from the dots of row `source` to those of row `target`, by their numbers in the list of rows.

    faint draws them as what came before. Shapes: weights (T, S), a row a dot of `target`.
    """

    source: int
    target: int
    weights: Any
    colour: str = "highlight"
    faint: bool = False


def attention_flow(
    rows: Sequence[Row],
    flows: Sequence[Flow],
    *,
    legend: Sequence[tuple[str, str]] = (),
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Dots in rows, and lines between rows whose width in points is 5 times the weight.

    legend holds pairs (colour, text), in the upper left corner. Weights under .01 are not drawn.
    Errors: UserError for weights of another shape than the rows, or where the picture does not fit.
    """
    with drawing(
        title, [row.words for row in rows], [row.name for row in rows], [text for _, text in legend]
    ):
        values = [_weights(flow, rows) for flow in flows]
        sides = [_names_room(rows, side) for side in ("left", "right")]
        low = min(row.level * RISE - _band(row, False) for row in rows)
        high = max(row.level * RISE + _band(row, True) for row in rows)
        columns = max(row.left + row.count for row in rows)
        pitch = max(word_line(TEXT), min(PITCH, (MAX_SIDE - 4 * PAD - sum(sides)) / columns))
        width = columns * pitch + sum(sides)
        longest = max(row.count for row in rows)
        ax = sheet(width, high - low, ax=ax, title=title, what=f"a picture of {longest} words a row")
        places = [_places(row, sides[0], low, pitch) for row in rows]
        for flow, weights in zip(flows, values, strict=True):
            _lines(ax, flow, weights, places[flow.source], places[flow.target])
        for row, place in zip(rows, places, strict=True):
            _dots(ax, row, place)
            _writing(ax, row, place)
        _legend(ax, legend, high - low)
        return root(ax)


def _weights(flow, rows):
    weights = array(flow.weights, "weights", 2).astype(np.float64)
    shape = rows[flow.target].count, rows[flow.source].count
    if weights.shape != shape:
        raise UserError(f"weights has shape {weights.shape}: between these rows it must be {shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise UserError("weights must be finite and not negative to be drawn as lines")
    return weights


def _names_room(rows, side):
    return max([text_size(row.name)[0] + NAME for row in rows if row.name_side == side], default=0.0)


def _band(row, above):
    """Room for a row's upright words, under or over it, in inches."""
    own = words(row.words or [], len(row.words or []), "words") if row.above == above else []
    return DOT + GAP + max((text_size(word, TEXT, weight="bold")[0] for word in own), default=0.0)


def _places(row, left, low, pitch):
    """The dots' middles. Shapes: -> (count, 2)."""
    x = left + (row.left + np.arange(row.count) + 0.5) * pitch
    return np.stack([x, np.full(row.count, row.level * RISE - low)], -1)


def _lines(ax, flow, weights, source, target):
    t, s = np.nonzero(weights >= FAINTEST)
    shown = weights[t, s]  # (N,)
    colours = np.tile(to_rgba(colour_of(flow.colour)), (len(t), 1))
    colours[:, 3] = (0.12 + 0.1 * shown) if flow.faint else np.clip(0.2 + 0.8 * shown, 0, 1)
    lines = LineCollection(
        list(np.stack([source[s], target[t]], 1)), linewidths=WIDEST * shown, colors=colours, clip_on=False
    )
    lines.set(capstyle="round", zorder=1 if flow.faint else 2, label=f"{flow.source} to {flow.target}")
    ax.add_collection(lines, autolim=False)


def _dots(ax, row, place):
    lit = _lit(row)
    faces = [colour_of(row.colour)] * lit + ["#ffffff"] * (row.count - lit)
    edges = [edge(row.colour)] * lit + ["#c8ccd0"] * (row.count - lit)
    size = (2 * DOT * 72) ** 2  # points squared
    style = {"s": size, "c": faces, "edgecolors": edges, "linewidths": 1, "zorder": 3, "clip_on": False}
    ax.scatter(place[:, 0], place[:, 1], **style)


def _lit(row):
    return row.count if row.lit is None else row.lit


def _writing(ax, row, place):
    side, end, shift = ("right", 0, -NAME) if row.name_side == "left" else ("left", -1, NAME)
    x, y = place[end]
    ax.text(x + shift, y, row.name, ha=side, va="center_baseline", color=COLOURS["faint"])
    away, va = (DOT + 0.06, "bottom") if row.above else (-DOT - 0.06, "top")
    if row.words is not None:
        for index, word in enumerate(words(row.words, row.count, "words")[: _lit(row)]):
            weight = "bold" if index == row.bold else "normal"
            x, y = place[index]
            ax.text(x, y + away, word, rotation=90, ha="center", va=va, weight=weight, parse_math=False)


def _legend(ax, entries, top):
    for index, (ink, text) in enumerate(entries):
        y = top - (index + 0.6) * 1.3 * line_height(SMALL)
        ax.plot([0, 0.3], [y, y], color=colour_of(ink), linewidth=3, clip_on=False)
        ax.text(0.38, y, text, size=SMALL, va="center_baseline")
