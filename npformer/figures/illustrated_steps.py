"""Self-attention of one word, step by step, with the numbers of the illustrated Transformer.

Its scores 112 and 96 were invented; here vectors are constructed that have them, and a real forward pass
through npformer.functional.attention makes everything that follows.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import MACHINES, SEED, generator, listed, words_of
from npformer.functional.attention import attention
from npformer.plots import Grid
from npformer.plots.board import Board, paler
from npformer.plots.style import drawing, number, widest

SCORES = (112.0, 96.0)
SHOWN = 3  # of the d_k numbers of a vector
ROW = 0.52  # inches from one step to the next
DOWN = 0.12  # more before the last, for its arrows


class Steps(NamedTuple):
    """One word's attention to all words; rows of arrays are words."""

    words: list[str]
    q: Any  # (T, K)
    k: Any
    v: Any
    raw: Any  # (T,) q1 · k before the scale
    scaled: Any  # (T,)
    weights: Any  # (T,)
    z: Any  # (K,)


def steps_of(words: list[str], scores: Sequence[float], d_k: int, seed: int) -> Steps:
    """Attention over vectors whose first query has the given scores."""
    q, k, v = vectors_with(words, scores, d_k, seed)
    y, cache = attention(q, k, v)
    _, unscaled = attention(q, k, v, scale=1.0)
    return Steps(words, q, k, v, unscaled.scores[0], cache.scores[0], cache.weights[0], y[0])


def vectors_with(words: list[str], scores: Sequence[float], d_k: int, seed: int):
    """Random q, k, v with q1 · k_j = scores[j]: multiples of 1/4, so that the sums come out exactly.

    Shapes: -> three of (T, K). Errors: UserError for other than one score a word, or a d_k under 1.
    """
    if len(scores) != len(words) or not all(isinstance(s, int | float) and math.isfinite(s) for s in scores):
        raise UserError(f"scores is {scores!r}: give one number for each of the {len(words)} words")
    if not isinstance(d_k, int) or not 1 <= d_k <= 4096:
        raise UserError(f"d_k is {d_k!r}: give a whole number from 1 to 4096")
    rng = generator(seed)
    q = rng.integers(-6, 7, (len(words), d_k)) / 4  # (T, K)
    q[0, -1] = 1
    first, noise = q[0], rng.standard_normal((len(words), d_k))
    along = (np.asarray(scores) - noise @ first) / (first @ first)  # (T,) how much of q1 each key needs
    k = np.round(4 * (noise + along[:, None] * first)) / 4
    k[:, -1] += scores - k @ first  # what the rounding left over, where q1 is 1
    return q, k, rng.standard_normal((len(words), d_k))


@figure("F32", "Scores of one word", source="S2", data="FW")
def scores(
    studio, *, sentence: str = MACHINES, scores: Sequence[float] = SCORES, d_k: int = 64, seed: int = SEED
) -> Drawing:
    """Each score is the dot product of the first word's query with a word's key."""
    s = steps_of(words_of(sentence), scores, d_k, seed)
    caption = (
        f"To encode “{s.words[0]}”, its query is multiplied with the key of every word, its own included: "
        f"the scores are {listed(map(whole, s.raw))}. The vectors, {d_k} numbers each, were made to give "
        "them."
    )
    return Drawing(_draw(s, 1), caption)


@figure("F33", "Scores to weights", source="S2", data="FW")
def softmax_of_scores(
    studio, *, sentence: str = MACHINES, scores: Sequence[float] = SCORES, d_k: int = 64, seed: int = SEED
) -> Drawing:
    """The scores divided by √d_k, and their softmax."""
    s = steps_of(words_of(sentence), scores, d_k, seed)
    _, plain = attention(s.q, s.k, s.v, scale=1.0)
    caption = (
        f"Divided by √{d_k} = {whole(math.sqrt(d_k))} the scores are {listed(map(whole, s.scaled))}, and the "
        f"softmax turns them into weights that sum to 1: {listed(number(w, 4) for w in s.weights)}. Without "
        f"the division they would be {listed(number(w, 4) for w in plain.weights[0])}: large scores "
        "leave the softmax no choice but one word."
    )
    return Drawing(_draw(s, 3), caption)


@figure("F34", "Weights times values", source="S2", data="FW")
def sum_of_values(
    studio, *, sentence: str = MACHINES, scores: Sequence[float] = SCORES, d_k: int = 64, seed: int = SEED
) -> Drawing:
    """Every value times its weight, and their sum z1."""
    s = steps_of(words_of(sentence), scores, d_k, seed)
    sums = " + ".join(f"{number(w)} · ({number(v)})" for w, v in zip(s.weights, s.v[:, 0], strict=True))
    caption = (
        "Every value is multiplied by its weight, which keeps the words that matter and fades the others; "
        f"the sum is z1, what self-attention makes of “{s.words[0]}”. "
        f"Its first number is {sums} = {number(s.z[0])}."
    )
    return Drawing(_draw(s, 5), caption)


def _draw(s: Steps, steps: int):
    """The columns of the words, down to one of the steps: 1 score, 2 scaled, 3 softmax, 4 weighted, 5 sum."""
    shown = slice(0, min(SHOWN, s.q.shape[1]))
    weighted = s.weights[:, None] * s.v  # (T, K)
    d_k = s.q.shape[1]
    names = ["input", "query", "key", "value", "score", f"÷ √{d_k} = {whole(math.sqrt(d_k))}", "softmax"]
    names = [*names, "softmax × value", "sum"][: 4 + steps]
    with drawing(s.words):
        board = Board([a[..., shown] for a in (s.q, s.k, s.v, weighted, s.z)])
        width = board.cell * shown.stop
        places = (max(width, widest(s.words, 12)) + (1.5 if steps >= 4 else 1.1)) * np.arange(len(s.words))
        edge = places[0] - width / 2 - (0.9 if steps >= 4 else 0.7)
        for row, name in enumerate(names):
            board.text(edge, -ROW * row - (DOWN if row == 8 else 0), name, size=10, ha="right")
        for i, x in enumerate(places):
            board.text(x, 0, s.words[i], size=12, parse_math=False)
            for row, (letter, values) in enumerate((("q", s.q), ("k", s.k), ("v", s.v)), 1):
                _vector(board, values[i, shown], letter, i, (x, -ROW * row), letter, d_k)
            _numbers(board, s, i, x, steps)
            if steps >= 4:
                faded = paler("v", s.weights[i])
                _vector(
                    board, weighted[i, shown], "v", i, (x, -7 * ROW), faded, d_k, board.write(s.weights[i])
                )
        if steps >= 5:
            _sum(board, s.z[shown], places, d_k)
        return board.cut()


def _numbers(board, s, i, x, steps):
    """The score of a word, its score over √d_k, its weight."""
    board.text(x, -4 * ROW, f"$q_1 \\cdot k_{{{i + 1}}}$ = {whole(s.raw[i])}", size=12)
    if steps >= 2:
        board.text(x, -5 * ROW, whole(s.scaled[i]), size=12)
    if steps >= 3:
        board.text(x, -6 * ROW, board.write(s.weights[i]), size=12, weight="bold")


def _vector(board, values, letter, i, place, colour, d_k, factor=""):
    """The first numbers of a vector, with dots where there are more."""
    x, y = place
    name = f"{factor} ${letter}_{{{i + 1}}}$".strip()
    cells = Grid(values, name, colour, edge=letter, numbers=True)
    placed = board.grid_at(cells, x, y, label="left")
    if d_k > len(values):
        board.text(placed.right + 0.05, y, "…", ha="left")
    return placed


def _sum(board, z, places, d_k):
    """The weighted values, added up to z1."""
    for left, right in pairwise(places):
        board.text((left + right) / 2 - 0.12, -7 * ROW, "+", size=15)
    placed = _vector(board, z, "z", 0, (places[0], -8 * ROW - DOWN), "z", d_k)
    x = (placed.right + 0.25, placed.centre[1])
    if len(places) > 1:
        end = places[-1]
        board.arrow((end, -7 * ROW - 0.16), (end, x[1]), x)
    board.arrow((places[0], -7 * ROW - 0.14), (places[0], placed.top))


def whole(value: float) -> str:
    """112, 14 or 12.5: a number without the zeros that it does not need."""
    return f"{round(float(value), 2):g}".replace("-", "−")
