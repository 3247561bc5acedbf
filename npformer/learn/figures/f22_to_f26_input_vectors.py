"""F22 to F26: the input of the encoder: word vectors, position vectors, and their sum."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.positions import sinusoids
from npformer.learn.figures.datawhale_example import (
    STUDENT,
    Embedded,
    WordVectors,
    embedded,
    embedded_with_positions,
)
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid, curves, value_map
from npformer.plots.board import Board
from npformer.plots.heat_maps import colour_bar, signed_scale
from npformer.plots.layout import PAD, axes_at, new_figure
from npformer.plots.style import LABEL, drawing, number, widest

GAP = 0.45  # between the vectors of two words, in inches


@figure("F22", "Three words and their vectors", "datawhale", "FW", partial(embedded, sentence=STUDENT))
def words_as_vectors(vectors: WordVectors) -> Drawing:
    """Draw each word of a sentence below the vector from its embedding."""
    words, x, _ = vectors
    d_model = x.shape[1]
    with drawing(words):
        board = Board([x])
        for i, (place, word) in enumerate(zip(places_of(board, words, d_model), words, strict=True)):
            cells = board.grid_at(Grid(x[i], f"$x_{{{i + 1}}}$", "x", numbers=True), place, 0)
            board.arrow((place, -0.52), (place, cells.bottom))
            board.text(place, -0.62, word, size=12, va="top", parse_math=False)
        picture = board.cut()
    caption = (
        f"The embedding turns each of the {len(words)} words into a vector of {d_model} numbers: "
        f"“{words[0]}” becomes x1 = {board.row(x[0])}. Real models use 256 or 512 numbers per word."
    )
    return Drawing(picture, caption)


@figure(
    "F23",
    "Embeddings with a time signal",
    "datawhale",
    "FW",
    partial(embedded_with_positions, sentence=STUDENT),
)
def time_signal(vectors: Embedded) -> Drawing:
    """Draw word vector + position vector = the input of encoder #0."""
    words, x, t, cache = vectors
    y, d_model = cache.y[0], x.shape[1]  # (T, D)
    rows = (  # from below
        (x, "x", "x", "embedding", 0.0),
        (t, "t", "position", "time signal", 0.95),
        (y, "x'", "x_position", "embedding with\ntime signal", 1.9),
    )
    with drawing(words):
        board = Board([x, t, y])
        places = places_of(board, words, d_model)
        for values, letter, colour, name, height in rows:
            board.text(places[0] - d_model * board.cell / 2 - 0.48, height, name, ha="right", va="center")
            for i, place in enumerate(places):
                label = f"${letter[0]}{letter[1:]}_{{{i + 1}}}$"
                board.grid_at(Grid(values[i], label, colour, numbers=True), place, height, label="left")
        for place, word in zip(places, words, strict=True):
            board.text(place, 0.475, "+", size=16)
            board.text(place, 1.425, "=", size=16)
            board.arrow((place, -0.5), (place, -0.14))
            board.text(place, -0.6, word, size=12, va="top", parse_math=False)
        _encoders(board, places, 2.04)
        picture = board.cut()
    caption = (
        "The vector t of its position is added to each word's vector x. The sums, such as "
        f"x'1 = {board.row(y[0])}, are the input of encoder #0 only. "
        "Without t the encoder could not distinguish different orders of the words."
    )
    return Drawing(picture, caption)


def _encoders(board: Board, places: np.ndarray, bottom: float) -> None:
    """Draw encoder #0 above the sums, and encoder #1 above it."""
    middle = (places[0] + places[-1]) / 2
    width = max(places[-1] - places[0] + 4 * board.cell, 1.6)
    for level in range(2):
        y = bottom + 0.6 + 0.85 * level
        board.box(f"encoder #{level}", middle, y, width, 0.5, colour="encoder")
        for place in places:
            board.arrow((place, bottom + 0.85 * level), (place, y - 0.25))
    for place in places:
        board.arrow((place, y + 0.25), (place, y + 0.5))


def places_of(board: Board, words: list[str], d_model: int, least: float = 0.0) -> np.ndarray:
    """Return the centres of equally wide columns, one for each word, in inches: (T,).

    Args:
        board: The board on which the vectors are drawn.
        words: The words.
        d_model: The width of the vectors.
        least: The smallest width of a column.
    """
    step = max(d_model * board.cell, widest(words, 12), least) + GAP
    return step * np.arange(len(words))


# Position vectors.

WIDE = 6.8  # inches, of a heat map
IN_A_ROW = 4  # names in a row of the legend of the curves
NAMES = {
    "halves": "sines, then cosines",
    "interleaved": "sines and cosines in turn",
    "jianshu": "the Jianshu article's code: exponent 2i/d for every i",
    "marian": "sines, then cosines, with the angles of the paper",
}


@figure("F24", "Position vectors as cells", "datawhale", "FO", partial(embedded, sentence=STUDENT))
def position_cells(vectors: WordVectors, *, layout: str = "halves") -> Drawing:
    """Draw the position vector of each word above its word vector, to which it is added.

    Args:
        vectors: The words and their vectors.
        layout: The layout of the sines and cosines, one of the LAYOUTS of functional.positions.
    """
    words, x, _ = vectors
    d_model = x.shape[1]
    table = _table(len(words), d_model, layout)
    with drawing(words):
        board = Board([table, x], write=short)
        places = places_of(board, words, d_model)
        edge = places[0] - d_model * board.cell / 2 - 0.45
        board.text(edge, 0, "positional\nencoding", ha="right", va="center")
        board.text(edge, -0.95, "embedding", ha="right")
        for i, (place, word) in enumerate(zip(places, words, strict=True)):
            board.grid_at(
                Grid(table[i], f"$t_{{{i + 1}}}$", "position", numbers=True), place, 0, label="left"
            )
            board.text(place, -0.475, "+", size=16)
            board.grid_at(Grid(x[i], f"$x_{{{i + 1}}}$", "x", numbers=True), place, -0.95, label="left")
            board.text(place, -1.3, word, size=12, va="top", parse_math=False)
            board.text(place, 0.24, f"position {i}", va="bottom", color="#767676")
        picture = board.cut()
    caption = (
        f"Any word at position {len(words) - 1} gets t{len(words)} = {board.row(table[-1])} "
        f"({NAMES[layout]}). The first sine and cosine advance by one radian from word to word, the last "
        "hardly change: they are like the fast and the slow hands of a clock."
    )
    return Drawing(picture, caption)


@figure("F25", "Dimensions 4 to 7 over positions", "datawhale", "FO")
def position_curves(
    *, dims: tuple[int, ...] = (4, 5, 6, 7), length: int = 100, d_model: int = 20, layout: str = "interleaved"
) -> Drawing:
    """Draw some columns of the table of position vectors as curves.

    Args:
        dims: The columns of the table to draw.
        length: The number of positions.
        d_model: The width of the vectors.
        layout: The layout of the sines and cosines, one of the LAYOUTS of functional.positions.
    """
    if not dims or not all(isinstance(d, int) and 0 <= d < d_model for d in dims):
        raise UserError(f"dims is {dims!r}: name dimensions from 0 to {d_model - 1}")
    table = _table(length, d_model, layout)
    picture = curves(table[:, list(dims)].T, xlabel="position", ylabel="value")
    ax = picture.axes[0]
    names = [f"dim {dim}" for dim in dims]
    with drawing(names):
        above = 0.35 * -(-len(dims) // IN_A_ROW)
        ax.set_ylim(-1.05, 1.05 + above)  # above the curves, room for the legend
        ax.set_yticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "0.5", "1"])
        ax.legend(ax.lines, names, loc="upper center", ncols=IN_A_ROW, handlelength=2.5, borderaxespad=0.2)
    caption = f"Each dimension is a sine or cosine with its own period: {_periods(dims, d_model, layout)}. "
    if layout == "interleaved":
        caption += "Dimensions 2i and 2i + 1 have the same period, shifted by a quarter. "
    caption += "All values stay within ±1, however long the sentence is."
    return Drawing(picture, caption)


def period(dim: int, d_model: int, layout: str) -> float:
    """Return the number of positions after which a dimension repeats: 2π 10000^e, e given by the layout.

    Args:
        dim: The dimension.
        d_model: The width of the position vectors.
        layout: The layout of the sines and cosines, one of the LAYOUTS of functional.positions.
    """
    half = d_model // 2
    exponent = {
        "interleaved": (dim - dim % 2) / d_model,
        "halves": dim % max(1, half) / max(1, half - 1),
        "jianshu": 2 * dim / d_model,
        "marian": 2 * (dim % max(1, half)) / d_model,
    }[layout]
    return float(2 * math.pi * 10000**exponent)


def _periods(dims: Sequence[int], d_model: int, layout: str) -> str:
    """Return the periods in words: "39.64 positions in dims 4 and 5, 99.58 positions in dims 6 and 7"."""
    groups: dict[str, list[int]] = {}
    for dim in dims:
        groups.setdefault(f"{period(dim, d_model, layout):.2f}", []).append(dim)
    parts = []
    for length, members in groups.items():
        names = " and ".join(map(str, members))
        parts.append(f"{length} positions in dim{'s' if len(members) > 1 else ''} {names}")
    return ", ".join(parts)


@figure("F26", "Position vectors as heat maps", "datawhale", "FO")
def position_maps(
    *,
    upper: tuple[int, int, str] = (20, 512, "halves"),
    lower: tuple[int, int, str] = (10, 64, "interleaved"),
) -> Drawing:
    """Draw two tables, each given as (positions, dimensions, layout). A row is the vector of one position.

    Args:
        upper: The upper table.
        lower: The lower table.
    """
    tables = [_table(*which) for which in (upper, lower)]
    heights = [float(np.clip(0.13 * len(table), 1.3, 4)) for table in tables]
    figure = new_figure(WIDE + 1.9, sum(heights) + 1.65, "these two tables")
    top = sum(heights) + 1.65
    for (length, d_model, layout), table, high in zip((upper, lower), tables, heights, strict=True):
        bottom = top - 0.75 - high
        ax = axes_at(figure, 0.75, bottom, WIDE, high)
        value_map(table, xlabel="embedding dimension", ylabel="token position", ax=ax)
        with drawing():
            ax.set_title(f"{length} × {d_model}: {NAMES[layout]}", size=LABEL, loc="left", weight="bold")
            beside = axes_at(figure, 0.75 + WIDE + PAD, bottom, 0.16, high)
            colour_bar(figure, beside, ax.images[0], signed_scale(table, "value"), high)
        top = bottom - 0.1
    pictured = " and ".join(
        f"{length} × {d_model} ({NAMES[layout]})" for length, d_model, layout in (upper, lower)
    )
    caption = (
        f"Two tables of position vectors, {pictured}. Each row belongs to one position and is added to the "
        "vector of the word at that position. The first sines and cosines change quickly from row to row, "
        "the last ones hardly at all."
    )
    return Drawing(figure, caption)


def _table(length: int, d_model: int, layout: str) -> Array:
    """Return the table of sinusoids.

    Raises:
        UserError: If a size is impossible.
    """
    for name, value in (("the number of positions", length), ("d_model", d_model)):
        if not isinstance(value, int) or value < 1:
            raise UserError(f"{name} is {value!r}: give a whole number, 1 or more")
    return sinusoids(length, d_model, layout)


def short(value: float) -> str:
    """Return a number with two decimals, or with four if two would hide it: 0, 1, .84, .0001."""
    if value in (0, 1, -1) or abs(abs(value) - 1) < 5e-4:
        return f"{round(value)}".replace("-", "−")
    return number(value, 4 if abs(value) < 5e-3 else 2)
