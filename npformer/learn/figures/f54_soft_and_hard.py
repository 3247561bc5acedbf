"""F54: soft attention, the mean of all vectors, beside hard attention, one vector that is drawn at random."""

from collections.abc import Callable
from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional import attend, dot_similarity, hard_attend
from npformer.functional.hard import HardAttendCache
from npformer.learn.figures.datawhale_example import WordVectors, embedded
from npformer.learn.figures.f58_basic_self_attention import weighted_sum
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.cells import CELL
from npformer.plots.style import FORMULA, LABEL, drawing, widest

DRAWS = 1000
SHOWN = 5  # the number of draws in the table
APART = 1.0  # between the two pictures, in inches
MEAN = r"$E[\hat z] = \Sigma_i\; \alpha_i\, a_i$"
SAMPLED = r"s \sim \mathrm{Multinoulli}(\alpha)"  # as the document writes it


@figure("F54", "Soft and hard attention", "paperspace", "FW", partial(embedded, sentence="the dog saw birds"))
def soft_and_hard(vectors: WordVectors, *, query: int = 2) -> Drawing:
    """Draw E[ẑ] = Σ_i α_i a_i beside ẑ = Σ_i s_i a_i with s ~ Multinoulli(α), and the mean of many draws.

    Args:
        vectors: The words and their vectors.
        query: The position of the word whose attention is drawn.
    """
    words, a, seed = vectors
    if not isinstance(query, int) or not 0 <= query < len(words):
        raise UserError(f"query is {query!r}: there are words 0 .. {len(words) - 1}")
    scores, _ = dot_similarity(a[query : query + 1], a)  # (1, S)
    mean, soft = attend(scores, a)  # (1, D)
    z, hard = hard_attend(scores, a, rng=np.random.default_rng(seed), draws=DRAWS)  # (N, 1, D)
    with drawing(words):
        board = Board([a, z, soft.weights], names=words)
        step = max(board.cell, widest(words, 11)) + 0.5
        places = step * np.arange(len(words))
        _picture(board, places, words, query, a, soft.weights[0], mean, MEAN)
        right = places + max(places[-1] + board.cell, a.shape[1] * board.cell) + APART
        # the first draw as integers, because 0 and 1 are not probabilities here
        drawn = hard.sample[0, 0].astype(int)
        _picture(board, right, words, query, a, drawn, z[0], r"$\hat z = \Sigma_i\; s_i\, a_i$")
        _heading(board, places, "soft attention", r"\alpha", soft.weights[0])
        _heading(board, right, "hard attention", rf"{SAMPLED},\ \ s", drawn)
        _table(board, (places[0] + right[-1]) / 2, -CELL * a.shape[1] - 1.35, words, z, hard, mean)
        picture = board.cut(what=f"a sentence of {len(words)} words")
    return Drawing(picture, _caption(words, query, hard, z, mean, board.write))


def _picture(
    board: Board,
    places: np.ndarray,
    words: list[str],
    query: int,
    a: Array,
    weights: Array,
    z: Array,
    name: str,
) -> None:
    """Draw the vectors, their weights, and the weighted sum."""
    bottom = -CELL * a.shape[-1]
    for i, place in enumerate(places):
        cells = Grid(a[i][:, None], f"$a_{{{i + 1}}}$", "v", numbers=True)
        board.grid(cells, place - board.cell / 2, 0, label="below")
        weight = "bold" if i == query else "normal"
        board.text(place, bottom - 0.42, words[i], size=11, weight=weight, va="top", parse_math=False)
    weighted_sum(board, places, weights)
    placed = board.grid_at(Grid(z, name, "z", numbers=True), places.mean(), 2.85)
    board.arrow((places.mean(), 2.24), (places.mean(), placed.bottom))


def _heading(board: Board, places: np.ndarray, name: str, symbol: str, weights: Array) -> None:
    """Write the name of the attention, and below it its weights: "symbol = (...)"."""
    board.text(places.mean(), 3.75, name, size=LABEL, weight="bold", va="bottom")
    values = ", ".join(map(board.write, weights))
    board.text(places.mean(), 3.42, f"${symbol} =$ ({values})", size=LABEL, va="bottom")


def _table(
    board: Board, middle: float, start: float, words: list[str], z: Array, hard: HardAttendCache, mean: Array
) -> None:
    """Draw a table of some samples with their outputs, the mean of all samples, and its expectation."""
    n = len(words)
    left = middle - (n + z.shape[-1]) * board.cell / 2
    beside = left + n * board.cell + 0.45
    samples, read = hard.sample[:, 0], z[:, 0]
    rows = [
        (samples[:SHOWN].astype(int), read[:SHOWN], [f"draw {i + 1}" for i in range(SHOWN)], words),
        (samples.mean(0)[None], read.mean(0)[None], [f"mean of {len(read)} draws"], None),
        (hard.weights, mean, ["soft: α and E[ẑ]"], None),
    ]
    top = start
    for s, values, names, columns in rows:
        grid = Grid(s, "", "r", rows=names, columns=columns, numbers=True, shade=True)
        board.grid(grid, left, top)
        board.grid(Grid(values, "", "z", numbers=True), beside, top)
        top -= len(s) * CELL + 0.12
    over = start + board.band(words) + 0.12
    board.text(left + n * board.cell / 2, over, f"${SAMPLED}$", size=FORMULA, va="bottom")
    board.text(beside + z.shape[-1] * board.cell / 2, over, r"$\hat z$", size=FORMULA, va="bottom")


def _caption(
    words: list[str], query: int, hard: HardAttendCache, z: Array, mean: Array, write: Callable[..., str]
) -> str:
    best = int(hard.weights[0].argmax())
    off = float(np.abs(z.mean(0) - mean).max())
    return (
        f"The query of “{words[query]}” gives every vector a weight, α = softmax(a{query + 1} · ai). Soft "
        "attention takes their weighted mean. Hard attention reads one of them: s ~ Multinoulli(α) is 1 for "
        "one word, which is drawn with the probabilities α, and 0 for the others; at inference the most "
        f"probable one is taken, “{words[best]}” ({write(hard.weights[0, best])}). On average the two agree: "
        f"the mean of {len(z)} draws is within {write(off)} of E[ẑ]."
    )
