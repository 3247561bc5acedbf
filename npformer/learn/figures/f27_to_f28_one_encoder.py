"""F27 and F28: vectors on their way through one encoder: self-attention, feed-forward, and their norms."""

from collections.abc import Callable
from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.learn.figures.datawhale_example import STUDENT, Example, make_example
from npformer.learn.figures.f22_to_f26_input_vectors import places_of
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Figure, Grid
from npformer.plots.board import Board
from npformer.plots.style import drawing

HIGH = 0.46  # of a box, in inches
LEAST = 1.3  # of a word's column
STEP = 0.82  # from the middle of a box to that of the vectors over it, and on to the next box


@figure("F27", "Vectors through one encoder", "datawhale", "FW", partial(make_example, sentence=STUDENT))
def one_encoder(example: Example) -> Drawing:
    """Draw x → self-attention → z → feed-forward → r for every word at once."""
    picture, row = _tower(example, paths=False)
    caption = (
        f"Self-attention mixes the words, so z1 = {row(example.normalised[0])} depends on all of them. The "
        "feed-forward network then transforms each z separately, which gives "
        f"r1 = {row(example.r[0])}. The residual connection and the norm after each sublayer are included."
    )
    return Drawing(picture, caption)


@figure("F28", "Thinking Machines: a feed-forward network for each position", "datawhale", "FW", make_example)
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
    with drawing(example.words):
        board = Board([values for values, _, _ in rows])
        width = max(example.x.shape[1] * board.cell, LEAST)
        places = places_of(board, example.words, example.x.shape[1], LEAST)
        left, right = places[0] - width / 2 - 0.45, places[-1] + width / 2 + 0.25  # of the encoder
        for row, (values, letter, colour) in enumerate(rows):
            _vectors(board, values, letter, colour, places, 2 * STEP * row)
        middle = (places[0] + places[-1]) / 2
        wide = places[-1] - places[0] + width
        board.box("self-attention", middle, STEP, wide, HIGH, colour="attention")
        for x in places if paths else [middle]:
            board.box("feed-forward", x, 3 * STEP, width if paths else wide, HIGH, colour="feed_forward")
        _arrows(board, places, paths)
        board.frame(left, STEP - 0.55, right, 3 * STEP + 0.62, colour="encoder")
        board.text(left + 0.1, 3 * STEP + 0.47, "encoder #0", ha="left", weight="bold")
        for x, word in zip(places, example.words, strict=True):
            board.text(x, -0.62, word, size=12, va="top", parse_math=False)
        if paths:
            board.box("encoder #1", (left + right) / 2, 5 * STEP - 0.1, right - left, HIGH, colour="encoder")
        return board.cut(), board.row


def _vectors(
    board: Board, values: Array, letter: str, colour: str, places: np.ndarray, height: float
) -> None:
    for i, x in enumerate(places):
        cells = Grid(values[i], f"${letter}_{{{i + 1}}}$", colour, numbers=True)
        board.grid_at(cells, x, height, label="left")


def _arrows(board: Board, places: np.ndarray, paths: bool) -> None:
    """Draw the arrows from word to x, through both boxes, and out at the top."""
    half, cell = HIGH / 2, 0.135
    stretches = [(-0.55, -cell)]
    for row in range(2):
        vectors, box = 2 * STEP * row, STEP * (2 * row + 1)
        stretches += [(vectors + cell, box - half), (box + half, vectors + 2 * STEP - cell)]
    stretches.append((4 * STEP + cell, 5 * STEP - 0.1 - half if paths else 4 * STEP + 0.5))
    for low, high in stretches:
        for x in places:
            board.arrow((x, low), (x, high))
