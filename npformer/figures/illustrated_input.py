"""What enters the encoder: word vectors, and word vectors with a time signal."""

import numpy as np

from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import SEED, STUDENT, embedded
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.style import drawing, widest

GAP = 0.45  # between the vectors of two words, in inches


@figure("F22", "Three words, a vector each", source="S2", data="FW")
def words_as_vectors(studio, *, sentence: str = STUDENT, d_model: int = 4, seed: int = SEED) -> Drawing:
    """Each word of a sentence under the vector that its embedding gives."""
    words, x, _, _ = embedded(sentence, d_model=d_model, seed=seed)
    with drawing(words):
        board = Board([x])
        for i, (place, word) in enumerate(zip(places_of(board, words, d_model), words, strict=True)):
            cells = board.grid_at(Grid(x[i], f"$x_{{{i + 1}}}$", "x", numbers=True), place, 0)
            board.arrow((place, -0.52), (place, cells.bottom))
            board.text(place, -0.62, word, size=12, va="top", parse_math=False)
        picture = board.cut()
    caption = (
        f"The embedding turns each of the {len(words)} words into a vector of {d_model} numbers: "
        f"“{words[0]}” becomes x1 = {board.row(x[0])}. Real models use 256 or 512 numbers a word."
    )
    return Drawing(picture, caption)


@figure("F23", "Embedding with time signal", source="S2", data="FW")
def time_signal(
    studio,
    *,
    sentence: str = STUDENT,
    d_model: int = 4,
    positions: str = "interleaved",
    seed: int = SEED,
) -> Drawing:
    """Word vector + position vector = what encoder #0 receives."""
    words, x, t, cache = embedded(sentence, d_model=d_model, positions=positions, seed=seed)
    y = cache.y[0]  # (T, D)
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
        f"Each word's vector x gets the vector t of its position added to it; the sums, here "
        f"x'1 = {board.row(y[0])}, enter encoder #0, and only encoder #0. "
        "Without t the encoder could not tell one order of the words from another."
    )
    return Drawing(picture, caption)


def _encoders(board, places, bottom):
    """Encoder #0 over the sums, and encoder #1 over it."""
    middle = (places[0] + places[-1]) / 2
    width = max(places[-1] - places[0] + 4 * board.cell, 1.6)
    for number in range(2):
        y = bottom + 0.6 + 0.85 * number
        board.box(f"encoder #{number}", middle, y, width, 0.5, colour="encoder")
        for place in places:
            board.arrow((place, bottom + 0.85 * number), (place, y - 0.25))
    for place in places:
        board.arrow((place, y + 0.25), (place, y + 0.5))


def places_of(board: Board, words: list[str], d_model: int, least: float = 0.0) -> np.ndarray:
    """The middles of equally wide columns, one for each word, in inches: (T,)."""
    step = max(d_model * board.cell, widest(words, 12), least) + GAP
    return step * np.arange(len(words))
