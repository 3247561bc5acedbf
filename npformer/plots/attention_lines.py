"""Attention as lines between tokens: the width of a line shows the weight.

word_lines connects two columns of tokens, attention_flow rows of dots from layer to layer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from npformer.errors import UserError, quantity
from npformer.plots.layout import MAX_SIDE, PAD, array, root, sheet, word_line, words
from npformer.plots.palette import COLOURS, edge, head_colour
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import LABEL, SMALL, TEXT, drawing, line_height, text_size, widest
from npformer.plots.style import number as number_text
from npformer.validation import require_count, require_index

WIDEST = 5.0  # points, the line of a weight of 1
FAINTEST = 0.01  # the smallest weight that is drawn
MANY = 20  # with more queries than this, only the strongest lines are drawn, because the others hide them
PER_QUERY = 2  # the lines that are drawn then, for each query on average
BLOCK = 0.17  # width of a head's block, in inches
GAP = 0.08
BETWEEN = 1.9  # inches, from the queries to the keys; twice as much if not every token has a label
LEGEND = 1.4 * line_height(SMALL)  # from one line of the legend to the next
KEY = 0.38  # inches, from the left edge of a legend to its texts


def word_lines(
    weights: ArrayLike,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    query: int | None = None,
    heads: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    most: int | None = None,
    every: int = 1,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw lines from the queries at the left to the keys at the right: wider and darker for larger weights.

    Beside every key stands a block for each head. Its colour shows the weight that the key gets from `query`,
    or the mean over all queries if `query` is None. Weights below .01 are not drawn. If the lines of more
    than 20 queries are drawn, only the strongest are, two for each query on average, and a note below the
    picture says so.

    Args:
        weights: The weights, (T, S), or (H, T, S) for several heads.
        queries, keys: T and S labels.
        query: The index of one query. Only its lines are drawn, and its label is bold.
        heads: The numbers of the H heads, which choose their colours; 0, 1, ... by default.
        names: A name for each of the H heads, for a legend below the picture. By default the heads have
            their numbers above their blocks if there are several.
        most: The largest number of lines. By default it is two for each query if there are more than 20
            queries, and there is no limit for fewer queries.
        every: The step from one label that is written to the next in the longer column, for pictures of many
            tokens.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the labels do not fit at 8 points.
    """
    with drawing(queries, keys, names, title):
        values = array(weights, "weights", 2, 3).astype(np.float64)
        values = values.reshape(-1, *values.shape[-2:])  # (H, T, S)
        count, n_queries, n_keys = values.shape
        left, right = words(queries, n_queries, "queries"), words(keys, n_keys, "keys")
        given = np.arange(count) if heads is None else np.atleast_1d(heads)
        numbers = [require_index("head", number) for number in given.tolist()]
        if len(numbers) != count:
            raise UserError(f"heads names {quantity(len(numbers), 'head')}, but there are weights of {count}")
        named = [] if names is None else words(names, count, "names")
        if query is not None:
            query = require_index("query", query, n_queries)
        if most is not None:
            require_count("most", most)
        require_count("every", every)
        _require_line_widths(values)
        shown = np.zeros(n_queries, bool)
        shown[slice(None) if query is None else query] = True
        drawn, note = strongest(values, shown, most)
        lines = _Lines(values, left, right, shown, numbers, drawn, every, bold=query is not None)
        entries = [(head_colour(index), name) for index, name in zip(numbers, named, strict=False)]
        return _draw_lines(lines, entries + ([("", note)] if note else []), names is None, ax, title)


class _Lines(NamedTuple):
    """Two columns of tokens and the lines between them."""

    values: np.ndarray  # (H, T, S)
    queries: list[str]
    keys: list[str]
    shown: np.ndarray  # bool (T,), True for the queries whose lines are drawn
    heads: list[int]
    drawn: np.ndarray  # bool (H, T, S), True for the weights that are drawn
    every: int
    bold: bool  # whether the shown queries are bold


def _draw_lines(
    lines: _Lines, entries: Sequence[tuple[str, str]], numbered: bool, ax: Axes | None, title: str | None
) -> Figure:
    """Draw the tokens, the lines and the blocks, and the entries of the legend below them."""
    values, queries, keys, shown, heads, drawn, every, bold = lines
    n = max(len(queries), len(keys))
    row, size = line_row(n, every), TEXT if n <= 30 else SMALL
    over = 2 * line_height(LABEL)  # "query", "key" and the numbers of the heads
    left_width = max(widest(queries, size), text_size("query", LABEL)[0])
    blocks = BLOCK * len(heads) + (GAP if heads else 0)
    right_width = blocks + GAP + max(widest(keys, size), text_size("key", LABEL)[0])
    between = BETWEEN if every == 1 else 2 * BETWEEN
    width, below = left_width + GAP + between + right_width, LEGEND * len(entries)
    width = max(width, KEY + widest([text for _, text in entries], SMALL))
    ax = sheet(width, below + n * row + over, ax=ax, title=title, what=f"a picture of {n} words")
    x0, x1 = left_width + GAP, left_width + GAP + between
    y_left, y_right = (_heights(len(side), below + n * row, n * row, row) for side in (queries, keys))
    _head_lines(ax, values, drawn, heads, (x0, y_left), (x1, y_right), row)
    _blocks(ax, values[:, shown].mean(1), heads, x1, y_right, row)
    style: dict[str, Any] = {"size": size, "va": "center_baseline", "parse_math": False}
    for index in _labelled(y_left):
        own: dict[str, Any] = {"weight": "bold" if bold and shown[index] else "normal"}
        own["color"] = "#222222" if shown[index] else "#767676"
        ax.text(x0 - GAP, y_left[index], queries[index], ha="right", **own, **style)
    for index in _labelled(y_right):
        ax.text(x1 + blocks + GAP, y_right[index], keys[index], **style)
    _column_names(ax, below + n * row, heads if numbered else [], x0, x1, blocks)
    for index, (colour, text) in enumerate(entries):
        y = below - (index + 0.6) * LEGEND
        if colour:
            ax.plot([0, KEY - 0.08], [y, y], color=colour, linewidth=3, clip_on=False)
        ax.text(
            KEY if colour else 0, y, text, size=SMALL, va="center_baseline", parse_math=False, gid="legend"
        )
    return root(ax)


def _head_lines(
    ax: Axes,
    values: np.ndarray,
    drawn: np.ndarray,
    numbers: Sequence[int],
    left: tuple[float, np.ndarray],
    right: tuple[float, np.ndarray],
    row: float,
) -> None:
    """Draw the lines of each head, which end at different heights. Shapes: values and drawn (H, T, S)."""
    (x0, y_left), (x1, y_right) = left, right
    most = min(0.28, 0.1 * (len(numbers) - 1)) * row  # so that the lines to one key stay apart
    apart = np.linspace(most, -most, len(numbers))
    for each, some, number, shift in zip(values, drawn, numbers, apart, strict=True):
        t, s = np.nonzero(some)
        starts = np.stack([np.full(len(t), x0), y_left[t]], -1)
        ends = np.stack([np.full(len(s), x1), y_right[s] + shift], -1)
        strength = np.clip(0.15 + 0.85 * each[t, s], 0, 1)
        _add_lines(ax, starts, ends, each[t, s], head_colour(number), strength, label=f"head {number}")


def _blocks(
    ax: Axes, weights: np.ndarray, numbers: Sequence[int], x: float, y_right: np.ndarray, row: float
) -> None:
    """Draw a column of blocks for each head. Shapes: weights (H, S)."""
    for index, (each, number) in enumerate(zip(weights, numbers, strict=True)):
        start = x + GAP / 2 + index * BLOCK
        end, half = start + BLOCK - 0.02, 0.42 * row
        squares = [[(start, y - half), (end, y - half), (end, y + half), (start, y + half)] for y in y_right]
        colours = _transparent(head_colour(number), np.clip(each, 0, 1))
        ax.add_collection(PolyCollection(squares, facecolors=colours, edgecolors="none"), autolim=False)


def _require_line_widths(weights: np.ndarray) -> None:
    """Raise UserError for weights that are no widths of lines."""
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise UserError("weights must be finite and not negative to be drawn as lines")


def line_row(count: int, every: int = 1) -> float:
    """Return the height of a token in a picture of lines between this many tokens, in inches."""
    if every > 1:
        return word_line(SMALL) / every
    return word_line(TEXT) * 1.25 if count <= 30 else word_line(SMALL)


def _heights(count: int, top: float, space: float, row: float) -> np.ndarray:
    """Return the heights of the `count` tokens of a column, of which the first is at the top, in inches.

    Where the tokens of a longer column, `row` apart, are so close that not all have labels, those of a
    shorter one are farther apart, so that all have labels if there is space.
    """
    distance = min(max(row, word_line(SMALL)), space / count)
    return top - distance * (np.arange(count) + 0.5)


def _labelled(heights: np.ndarray) -> range:
    """Return the indices of the tokens that get a label: all, or every n-th so that labels stay apart."""
    every = math.ceil(word_line(SMALL) / (heights[0] - heights[1]) - 1e-6) if len(heights) > 1 else 1
    return range(0, len(heights), every)


def strongest(weights: np.ndarray, shown: np.ndarray, most: int | None = None) -> tuple[np.ndarray, str]:
    """Return which weights are drawn as lines, and a note if some are left out for their number.

    Args:
        weights: The weights, (H, T, S).
        shown: True for the queries whose lines are drawn, (T,).
        most: The largest number of lines. By default it is two for each query if there are more than 20
            queries, and there is no limit for fewer queries.

    Returns:
        Bool (H, T, S), and the note or "".
    """
    lines = (weights >= FAINTEST) & shown[:, None]
    if most is None and shown.sum() > MANY:
        most = PER_QUERY * len(shown)
    count = int(lines.sum())
    if most is None or count <= most:
        return lines, ""
    order = np.argsort(-weights[lines], kind="stable")[:most]  # of equal ones, the first
    drawn = np.zeros_like(lines)
    drawn[tuple(axis[order] for axis in np.nonzero(lines))] = True
    least = weights[drawn].min()
    return drawn, f"the {drawn.sum()} strongest of {count} lines: weights from {number_text(least)}"


def _add_lines(
    ax: Axes,
    starts: np.ndarray,
    ends: np.ndarray,
    weights: np.ndarray,
    colour: str,
    strength: np.ndarray,
    **style: Any,
) -> None:
    """Draw lines as wide as their weights. Shapes: starts, ends (N, 2), weights, strength (N,)."""
    lines = LineCollection(
        list(np.stack([starts, ends], 1)),
        linewidths=WIDEST * weights,
        colors=_transparent(colour, strength),
        clip_on=False,
    )
    lines.set(capstyle="round", **style)
    ax.add_collection(lines, autolim=False)


def _transparent(colour: str, strength: np.ndarray) -> np.ndarray:
    """Return a colour for each strength from 0, which is invisible, to 1. Shapes: (N,) -> (N, 4)."""
    colours = np.tile(to_rgba(colour), (len(strength), 1))
    colours[:, 3] = strength
    return colours


def _column_names(ax: Axes, top: float, numbers: Sequence[int], x0: float, x1: float, blocks: float) -> None:
    """Write "query", "key", and the number of each head in its colour above the head's blocks."""
    y = top + 0.3 * line_height(LABEL)
    ax.text(x0 - GAP, y, "query", size=LABEL, ha="right", va="bottom", style="italic")
    ax.text(x1 + blocks + GAP, y, "key", size=LABEL, va="bottom", style="italic")
    if len(numbers) <= 1:
        return
    ax.text(x1 - 0.02, y, "head", size=SMALL, ha="right", va="bottom")
    for index, number in enumerate(numbers):
        x = x1 + GAP / 2 + (index + 0.5) * BLOCK - 0.01
        dark = 0.65 * np.array(to_rgb(head_colour(number)))  # so that it can be read on white
        style: dict[str, Any] = {"size": SMALL, "ha": "center", "va": "bottom", "weight": "bold"}
        ax.text(x, y, str(number), color=tuple(dark), **style)


# Rows of dots with lines between the rows.

PITCH = 0.33  # the distance between dots, in inches; it is smaller in long rows
RISE = 0.5  # the distance between rows, in inches
DOT = 0.075  # radius
ROW_GAP = 0.1
NAME = 0.18  # the distance between the last dot and the row's name, in inches


@dataclass(frozen=True)
class FlowRow:
    """A row of dots, one for each token."""

    name: str  # beside the row
    count: int  # of the dots
    left: float  # the distance from the picture's left edge, in units of the distance between dots
    level: float  # the height above the lowest row, in rows
    colour: str = "r"  # a role of the palette
    words: Sequence[str] | None = None  # a label for each dot
    above: bool = False  # whether the labels stand above the row instead of below it
    lit: int | None = (
        None  # this many dots are filled and labelled; outlines are tokens that do not exist yet
    )
    bold: int | None = None  # the index of the label that is bold
    name_side: str = "left"  # or "right"

    @property
    def labels(self) -> list[str]:
        """The labels that are written."""
        return [] if self.words is None else words(self.words, self.count, "words")[: self.lit]


@dataclass(frozen=True)
class Flow:
    """Lines from the dots of row `source` to those of row `target`, given by their indices among the rows."""

    source: int
    target: int
    weights: Any  # (T, S), one row for each dot of `target`
    colour: str = "highlight"
    faint: bool = False  # as for the lines of earlier steps


def attention_flow(
    rows: Sequence[FlowRow],
    flows: Sequence[Flow],
    *,
    legend: Sequence[tuple[str, str]] = (),
    ax: Axes | None = None,
) -> Figure:
    """Draw rows of dots, and lines between rows whose width in points is 5 times the weight.

    Weights below .01 are not drawn. Between rows of more than 20 dots only the strongest lines are drawn, two
    for each dot on average.

    Args:
        rows, flows: The rows of dots, and the lines between them.
        legend: Pairs (colour, text) for the upper left corner.
        ax: Axes to draw on; by default those of a new figure.

    Raises:
        UserError: If the shape of weights does not match its rows, or the picture does not fit.
    """
    texts = [text for _, text in legend]
    with drawing([row.words for row in rows], [row.name for row in rows], texts):
        sides = [
            max((text_size(row.name)[0] + NAME for row in rows if row.name_side == side), default=0.0)
            for side in ("left", "right")
        ]
        low = min(row.level * RISE - _row_band(row, False) for row in rows)
        high = max(row.level * RISE + _row_band(row, True) for row in rows)
        columns = max(row.left + row.count for row in rows)
        pitch = max(word_line(TEXT), min(PITCH, (MAX_SIDE - 4 * PAD - sum(sides)) / columns))
        what = f"a picture of {max(row.count for row in rows)} words a row"
        ax = sheet(columns * pitch + sum(sides), high - low, ax=ax, what=what)
        places = []  # the centres of the dots, (count, 2) for each row
        for row in rows:
            x = sides[0] + (row.left + np.arange(row.count) + 0.5) * pitch
            places.append(np.stack([x, np.full(row.count, row.level * RISE - low)], -1))
        for flow in flows:
            weights = array(flow.weights, "weights", 2).astype(np.float64)
            shape = rows[flow.target].count, rows[flow.source].count
            if weights.shape != shape:
                raise UserError(f"weights has shape {weights.shape}: between these rows it must be {shape}")
            _require_line_widths(weights)
            drawn, _ = strongest(weights[None], weights.max(1) > 0)
            t, s = np.nonzero(drawn[0])
            shown = weights[t, s]  # (N,)
            strength = (0.12 + 0.1 * shown) if flow.faint else np.clip(0.2 + 0.8 * shown, 0, 1)
            ends = places[flow.source][s], places[flow.target][t]
            style: dict[str, Any] = {"zorder": 1 if flow.faint else 2}
            style["label"] = f"{flow.source} to {flow.target}"
            _add_lines(ax, *ends, shown, colour_of(flow.colour), strength, **style)
        for row, place in zip(rows, places, strict=True):
            _draw_row(ax, row, place)
        for index, (ink, text) in enumerate(legend):
            y = high - low - (index + 0.6) * 1.3 * line_height(SMALL)
            ax.plot([0, 0.3], [y, y], color=colour_of(ink), linewidth=3, clip_on=False)
            ax.text(0.38, y, text, size=SMALL, va="center_baseline")
        return root(ax)


def _draw_row(ax: Axes, row: FlowRow, place: np.ndarray) -> None:
    """Draw the dots of a row with their labels, and its name. Shapes: place (count, 2)."""
    lit = row.count if row.lit is None else row.lit
    faces = [colour_of(row.colour)] * lit + ["#ffffff"] * (row.count - lit)
    edges = [edge(row.colour)] * lit + ["#c8ccd0"] * (row.count - lit)
    size = (2 * DOT * 72) ** 2  # points squared
    style: dict[str, Any] = {"edgecolors": edges, "linewidths": 1, "zorder": 3, "clip_on": False}
    ax.scatter(place[:, 0], place[:, 1], s=size, c=faces, **style)
    side, end, shift = ("right", 0, -NAME) if row.name_side == "left" else ("left", -1, NAME)
    x, y = place[end]
    ax.text(x + shift, y, row.name, ha=side, va="center_baseline", color=COLOURS["faint"])
    away, va = (DOT + 0.06, "bottom") if row.above else (-DOT - 0.06, "top")
    for index, ((x, y), word) in enumerate(zip(place, row.labels, strict=False)):
        style = {"weight": "bold" if index == row.bold else "normal", "parse_math": False}
        ax.text(x, y + away, word, rotation=90, ha="center", va=va, **style)


def _row_band(row: FlowRow, above: bool) -> float:
    """Return the height of a row's upright labels, below or above it, in inches."""
    own = words(row.words or [], len(row.words or []), "words") if row.above == above else []
    return DOT + ROW_GAP + max((text_size(word, TEXT, weight="bold")[0] for word in own), default=0.0)
