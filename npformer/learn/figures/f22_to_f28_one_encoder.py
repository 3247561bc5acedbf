"""F22 to F28: word vectors and position vectors, and their way through one encoder."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.positions import sinusoids
from npformer.learn.figures.datawhale_example import (
    STUDENT,
    Embedded,
    Example,
    WordVectors,
    embedded,
    embedded_with_positions,
    make_example,
)
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Figure, curves, value_map
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.cells import CELL
from npformer.plots.heat_maps import colour_bar, signed_scale
from npformer.plots.layout import PAD, axes_at, new_figure
from npformer.plots.palette import COLOURS
from npformer.plots.style import LABEL, drawing, number, widest

GAP = 0.45  # between the vectors of two words, in inches


@figure("F22", "Three words and their vectors", "datawhale", "FW", "2.1", embedded, sentence=STUDENT)
def words_as_vectors(vectors: WordVectors) -> Drawing:
    """Draw each word of a sentence below the vector from its embedding."""
    words, x, _ = vectors
    d_model = x.shape[1]
    with new_board(words, matrices=[x]) as board:
        places = _places(board, words, d_model)
        _vectors(board, x, "x", "x", places, 0, "above")
        _words(board, words, places, -0.62)
        for place in places:
            board.arrow((place, -0.52), (place, -CELL / 2))
    caption = (
        f"The embedding turns each of the {len(words)} words into a vector of {d_model} numbers: "
        f"“{words[0]}” becomes x1 = {board.row(x[0])}. Real models use 256 or 512 numbers per word."
    )
    return Drawing(board.figure, caption)


@figure(
    "F23",
    "Embeddings with a time signal",
    "datawhale",
    "FW",
    "3.1",
    embedded_with_positions,
    sentence=STUDENT,
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
    with new_board(words, matrices=[x, t, y]) as board:
        places = _places(board, words, d_model)
        for values, letter, colour, name, height in rows:
            board.text(places[0] - d_model * board.cell / 2 - 0.48, height, name, ha="right", va="center")
            _vectors(board, values, letter, colour, places, height)
        _words(board, words, places, -0.6)
        for place in places:
            board.text(place, 0.475, "+", size=16)
            board.text(place, 1.425, "=", size=16)
            board.arrow((place, -0.5), (place, -0.14))
        # encoder #0 above the sums, and encoder #1 above it
        middle = (places[0] + places[-1]) / 2
        width = max(places[-1] - places[0] + 4 * board.cell, 1.6)
        for level in range(2):
            high = 2.04 + 0.6 + 0.85 * level
            board.box(f"encoder #{level}", middle, high, width, 0.5, colour="encoder")
            for place in places:
                board.arrow((place, 2.04 + 0.85 * level), (place, high - 0.25))
        for place in places:
            board.arrow((place, high + 0.25), (place, high + 0.5))
    caption = (
        "The vector t of its position is added to each word's vector x. The sums, such as "
        f"x'1 = {board.row(y[0])}, are the input of encoder #0 only. "
        "Without t the encoder could not distinguish different orders of the words."
    )
    return Drawing(board.figure, caption)


def _places(board: Board, words: list[str], d_model: int, least: float = 0.0) -> np.ndarray:
    """Return the centres of equally wide columns, one for each word, in inches: (T,)."""
    step = max(d_model * board.cell, widest(words, 12), least) + GAP
    return step * np.arange(len(words))


def _vectors(
    board: Board, values: Array, letter: str, colour: str, places: np.ndarray, y: float, label: str = "left"
) -> None:
    """Draw the vector of each word at a height. Shapes: values (T, D), places (T,)."""
    for i, (vector, x) in enumerate(zip(values, places, strict=True), 1):
        board.grid_at(numbered(vector, f"${letter}_{{{i}}}$", colour), x, y, label=label)


def _words(board: Board, words: Sequence[str], places: np.ndarray, y: float) -> None:
    """Write each word below a height."""
    for word, x in zip(words, places, strict=True):
        board.text(x, y, word, size=12, va="top", parse_math=False)


# Position vectors.

WIDE = 6.8  # inches, of a heat map
IN_A_ROW = 4  # names in a row of the legend of the curves
NAMES = {
    "halves": "sines, then cosines",
    "interleaved": "sines and cosines in turn",
    "jianshu": "the Jianshu article's code: exponent 2i/d for every i",
    "marian": "sines, then cosines, with the angles of the paper",
}


@figure("F24", "Position vectors as cells", "datawhale", "FO", "3.1", embedded, sentence=STUDENT)
def position_cells(vectors: WordVectors, *, layout: str = "halves") -> Drawing:
    """Draw the position vector of each word above its word vector, to which it is added.

    `layout` is the layout of the sines and cosines, one of the LAYOUTS of functional.positions.
    """
    words, x, _ = vectors
    d_model = x.shape[1]
    table = _table(len(words), d_model, layout)
    with new_board(words, matrices=[table, x], write=short) as board:
        places = _places(board, words, d_model)
        edge = places[0] - d_model * board.cell / 2 - 0.45
        board.text(edge, 0, "positional\nencoding", ha="right", va="center")
        board.text(edge, -0.95, "embedding", ha="right")
        _vectors(board, table, "t", "position", places, 0)
        _vectors(board, x, "x", "x", places, -0.95)
        _words(board, words, places, -1.3)
        for i, place in enumerate(places):
            board.text(place, -0.475, "+", size=16)
            board.text(place, 0.24, f"position {i}", va="bottom", color=COLOURS["faint"])
    first = "The first sine advances" if layout == "jianshu" else "The first sine and cosine advance"
    caption = (
        f"Any word at position {len(words) - 1} gets t{len(words)} = {board.row(table[-1])} "
        f"({NAMES[layout]}). {first} by one radian from word to word, the last hardly change: they are like "
        "the fast and the slow hands of a clock."
    )
    return Drawing(board.figure, caption)


@figure("F25", "Dimensions 4 to 7 over positions", "datawhale", "FO", "3.1")
def position_curves(
    *, dims: tuple[int, ...] = (4, 5, 6, 7), length: int = 100, d_model: int = 20, layout: str = "interleaved"
) -> Drawing:
    """Draw some columns of the table of position vectors as curves.

    Args:
        dims: The columns of the table to draw.
        length, d_model: The number of positions, and the width of the vectors.
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
    groups: dict[str, list[int]] = {}
    for dim in dims:
        groups.setdefault(f"{period(dim, d_model, layout):.2f}", []).append(dim)
    parts = [
        f"{length} positions in dim{'s' if len(members) > 1 else ''} {' and '.join(map(str, members))}"
        for length, members in groups.items()
    ]
    caption = f"Each dimension is a sine or cosine with its own period: {', '.join(parts)}. "
    if layout == "interleaved":
        caption += "Dimensions 2i and 2i + 1 have the same period, shifted by a quarter. "
    caption += "All values stay within ±1, however long the sentence is."
    return Drawing(picture, caption)


def period(dim: int, d_model: int, layout: str) -> float:
    """Return the number of positions after which a dimension repeats: 2π 10000^e, e given by the layout.

    Args:
        dim, d_model: The dimension, and the width of the position vectors.
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


@figure("F26", "Position vectors as heat maps", "datawhale", "FO", "3.1")
def position_maps(
    *,
    upper: tuple[int, int, str] = (20, 512, "halves"),
    lower: tuple[int, int, str] = (10, 64, "interleaved"),
) -> Drawing:
    """Draw two tables, each given as (positions, dimensions, layout). A row is the vector of one position."""
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


# F27 and F28: one encoder, with and without a feed-forward box for each position.

HIGH = 0.46  # of a box, in inches
LEAST = 1.3  # of a word's column
STEP = 0.82  # from the middle of a box to that of the vectors over it, and on to the next box


@figure("F27", "Vectors through one encoder", "datawhale", "FW", "10.1", make_example, sentence=STUDENT)
def one_encoder(example: Example) -> Drawing:
    """Draw x → self-attention → z → feed-forward → r for every word at once."""
    picture, row = _tower(example, paths=False)
    caption = (
        f"Self-attention mixes the words, so z1 = {row(example.normalised[0])} depends on all of them. The "
        "feed-forward network then transforms each z separately, which gives "
        f"r1 = {row(example.r[0])}. The residual connection and the norm after each sublayer are included."
    )
    return Drawing(picture, caption)


@figure(
    "F28",
    "Thinking Machines: a feed-forward network for each position",
    "datawhale",
    "FW",
    "9.1",
    make_example,
)
def two_words(example: Example) -> Drawing:
    """Draw x → z → r of two words, with a feed-forward box at each position."""
    picture, row = _tower(example, paths=True)
    caption = (
        "Self-attention is one box, because each of its outputs depends on all words. The feed-forward "
        "network is drawn once for each position, because it transforms the positions separately, all with "
        f"the same weights. r1 = {row(example.r[0])} is an input of encoder #1."
    )
    return Drawing(picture, caption)


def _tower(example: Example, *, paths: bool) -> tuple[Figure, Callable[..., str]]:
    """Draw an encoder from the bottom up; return the figure, and the function that writes a vector as text.

    `paths` draws a feed-forward box for each position, and encoder #1.
    """
    rows = ((example.x, "x", "x"), (example.normalised, "z", "normalised"), (example.r, "r", "r"))
    with new_board(example.words, matrices=[values for values, _, _ in rows]) as board:
        width = max(example.x.shape[1] * board.cell, LEAST)
        places = _places(board, example.words, example.x.shape[1], LEAST)
        left, right = places[0] - width / 2 - 0.45, places[-1] + width / 2 + 0.25  # of the encoder
        for row, (values, letter, colour) in enumerate(rows):
            _vectors(board, values, letter, colour, places, 2 * STEP * row)
        middle = (places[0] + places[-1]) / 2
        wide = places[-1] - places[0] + width
        board.box("self-attention", middle, STEP, wide, HIGH, colour="attention")
        for x in places if paths else [middle]:
            board.box("feed-forward", x, 3 * STEP, width if paths else wide, HIGH, colour="feed_forward")
        # the arrows from word to x, through both boxes, and out at the top
        half, cell = HIGH / 2, 0.135
        stretches = [(-0.55, -cell)]
        for row in range(2):
            vectors, box = 2 * STEP * row, STEP * (2 * row + 1)
            stretches += [(vectors + cell, box - half), (box + half, vectors + 2 * STEP - cell)]
        stretches.append((4 * STEP + cell, 5 * STEP - 0.1 - half if paths else 4 * STEP + 0.5))
        for low, high in stretches:
            for x in places:
                board.arrow((x, low), (x, high))
        board.frame(left, STEP - 0.55, right, 3 * STEP + 0.62, colour="encoder")
        board.text(left + 0.1, 3 * STEP + 0.47, "encoder #0", ha="left", weight="bold")
        _words(board, example.words, places, -0.62)
        if paths:
            board.box("encoder #1", (left + right) / 2, 5 * STEP - 0.1, right - left, HIGH, colour="encoder")
    return board.figure, board.row
