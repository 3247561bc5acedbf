"""Soft attention beside hard attention: the mean of all vectors, and one of them that is drawn (F54)."""

import numpy as np

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_basic import weighted_sum
from npformer.figures.illustrated_example import SEED, embedded
from npformer.functional import dot_similarity, hard_look_up, look_up
from npformer.functional.hard import HardLookUpCache
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.cells import CELL
from npformer.plots.style import FORMULA, LABEL, drawing, widest

DRAWS = 1000
SHOWN = 5  # of them, in the table
APART = 1.0  # between the two pictures, in inches


@figure("F54", "Soft against hard attention", source="S4", data="FW")
def soft_and_hard(
    studio, *, sentence: str = "the dog saw birds", query: int = 2, d_model: int = 4, seed: int = SEED
) -> Drawing:
    """E[z] = Σ_i α_i a_i beside z = Σ_i s_i a_i with s ~ Multinoulli(α), and what many draws come to."""
    words, a, _, _ = embedded(sentence, d_model=d_model, positions="none", seed=seed)
    if not isinstance(query, int) or not 0 <= query < len(words):
        raise UserError(f"query is {query!r}: there are words 0 .. {len(words) - 1}")
    scores, _ = dot_similarity(a[query : query + 1], a)  # (1, S)
    mean, soft = look_up(scores, a)  # (1, D)
    z, hard = hard_look_up(scores, a, rng=np.random.default_rng(seed), draws=DRAWS)  # (N, 1, D)
    with drawing(words):
        board = Board([a, z, soft.weights], names=words)
        step = max(board.cell, widest(words, 11)) + 0.5
        places = step * np.arange(len(words))
        _picture(board, places, words, query, a, soft.weights[0], mean, r"$E[z] = \Sigma_i\; \alpha_i\, a_i$")
        right = places + max(places[-1] + board.cell, d_model * board.cell) + APART
        # the first draw as whole numbers: 0 and 1 are no probabilities here
        drawn = hard.sample[0, 0].astype(int)
        _picture(board, right, words, query, a, drawn, z[0], r"$z = \Sigma_i\; s_i\, a_i$")
        board.text(places.mean(), 3.4, "soft attention", size=LABEL, weight="bold", va="bottom")
        board.text(right.mean(), 3.4, "hard attention", size=LABEL, weight="bold", va="bottom")
        _table(board, (places[0] + right[-1]) / 2, -CELL * d_model - 1.35, words, z, hard, mean)
        picture = board.cut(what=f"a sentence of {len(words)} words")
    return Drawing(picture, _caption(words, query, hard, z, mean, board.write))


def _picture(board: Board, places, words, query, a, weights, z, name: str) -> None:
    """The vectors, their weights, and what comes of both."""
    bottom = -CELL * a.shape[-1]
    for i, place in enumerate(places):
        cells = Grid(a[i][:, None], f"$a_{{{i + 1}}}$", "v", numbers=True)
        board.grid(cells, place - board.cell / 2, 0, label="below")
        weight = "bold" if i == query else "normal"
        board.text(place, bottom - 0.42, words[i], size=11, weight=weight, va="top", parse_math=False)
    weighted_sum(board, places, weights)
    placed = board.grid_at(Grid(z, name, "z", numbers=True), places.mean(), 2.85)
    board.arrow((places.mean(), 2.24), (places.mean(), placed.bottom))


def _table(board: Board, middle: float, start: float, words, z, hard: HardLookUpCache, mean) -> None:
    """Some draws with what they read, the mean of all, and what it tends to."""
    n = len(words)
    left = middle - (n + z.shape[-1]) * board.cell / 2
    beside = left + n * board.cell + 0.45
    samples, read = hard.sample[:, 0], z[:, 0]
    rows = [
        (samples[:SHOWN].astype(int), read[:SHOWN], [f"draw {i + 1}" for i in range(SHOWN)], words),
        (samples.mean(0)[None], read.mean(0)[None], [f"mean of {len(read)} draws"], None),
        (hard.weights, mean, ["soft: α and E[z]"], None),
    ]
    top = start
    for s, values, names, columns in rows:
        grid = Grid(s, "", "r", rows=names, columns=columns, numbers=True, shade=True)
        board.grid(grid, left, top)
        board.grid(Grid(values, "", "z", numbers=True), beside, top)
        top -= len(s) * CELL + 0.12
    over = start + board.band(words) + 0.12
    board.text(left + n * board.cell / 2, over, "$s$", size=FORMULA, va="bottom")
    board.text(beside + z.shape[-1] * board.cell / 2, over, "$z$", size=FORMULA, va="bottom")


def _caption(words, query, hard: HardLookUpCache, z, mean, write) -> str:
    best = int(hard.weights[0].argmax())
    off = float(np.abs(z.mean(0) - mean).max())
    return (
        f"The query of “{words[query]}” gives every vector a weight, α = softmax(a{query + 1} · ai). Soft "
        "attention takes their weighted mean. Hard attention reads one of them: s is drawn with the "
        f"probabilities α, and at inference it is the likeliest, “{words[best]}” "
        f"({write(hard.weights[0, best])}). On average the two are one: the mean of {len(z)} draws is within "
        f"{write(off)} of E[z]."
    )
