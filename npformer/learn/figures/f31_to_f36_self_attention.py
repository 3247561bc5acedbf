"""F31 to F36: self-attention of a sentence as matrices, and step by step for one word.

F31, F35 and F36 show head #0 of the example. F32 to F34 show one word with the scores 112 and 96 of The
Illustrated Transformer: the vectors are constructed to have these scores, and npformer.functional.attention
computes the other numbers from them.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.attention import attention
from npformer.learn.figures.datawhale_example import (
    MACHINES,
    SEED,
    Example,
    generator,
    listed,
    make_example,
    words_of,
)
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Figure, Grid
from npformer.plots.board import Board, new_board, numbered, paler
from npformer.plots.cells import Placed
from npformer.plots.style import number, widest

LETTERS = ("q", "k", "v")
SHARES = paler("z", 0.45)  # the weights, on their way to Z


@figure("F31", "Query, key and value of two words", "datawhale", "FW", "4.4", make_example)
def queries_keys_values(example: Example, *, head: int = 0) -> Drawing:
    """Draw x1 and x2 times W^Q, W^K and W^V of one head: three vectors for each word."""
    one = example.head(head)
    with new_board(example.words, matrices=[example.x, *one[:6]]) as board:
        (d_model, d_head), count = one.wq.shape, len(example.words)
        wide = max(d_model, d_head) * board.cell
        places = [i * (max(wide, widest(example.words, 12)) + 0.6) for i in range(count)]
        edge = places[0] - wide / 2 - 0.45
        beyond = places[-1] + wide / 2 + 0.65 + d_head * board.cell / 2
        tall = board.size(Grid(one.wq))[1] + 0.3  # of a row with a weight matrix
        heights = [0.0, -0.6, *(-1.2 - tall * (i + 0.5) for i in range(3))]
        for y, name in zip(heights, ("input", "embedding", "queries", "keys", "values"), strict=True):
            board.text(edge, y, name, size=10, ha="right")
        for i, x in enumerate(places):
            board.text(x, 0, example.words[i], size=12, parse_math=False)
            vectors_of = zip(heights[1:], ("x", *LETTERS), (example.x, one.q, one.k, one.v), strict=True)
            for y, letter, vectors in vectors_of:
                cells = numbered(vectors[i], f"${letter}_{{{i + 1}}}$", letter)
                board.grid_at(cells, x, y, label="left")
        for y, letter, weight in zip(heights[2:], LETTERS, one[:3], strict=True):
            cells = numbered(weight, _weight_name(letter), "weight", letter)
            board.grid_at(cells, beyond, y, label="right")
    caption = (
        f"x1 times the matrix W^Q gives q1 = {board.row(one.q[0])}, the query of “{example.words[0]}”; W^K "
        "and W^V give its key and its value. The same three matrices are used for every word. They map "
        f"vectors of {d_model} numbers to vectors of {d_head}."
    )
    return Drawing(board.figure, caption)


@figure("F35", "X times W gives Q, K and V", "datawhale", "FW", "4.4", make_example)
def projections(example: Example, *, head: int = 0) -> Drawing:
    """Draw one head's queries, keys and values of all words at once as three products."""
    one = example.head(head)
    with new_board(example.words, matrices=[example.x, *one[:6]]) as board:
        y, step = 0.0, max(*example.x.shape) * 0.27 + 0.75
        for letter, weight, vectors in zip(LETTERS, one[:3], (one.q, one.k, one.v), strict=True):
            parts: list[Grid | str] = [
                numbered(example.x, "$X$", "x", rows=example.words, show_shape=True),
                "×",
                numbered(weight, _weight_name(letter), "weight", letter, show_shape=True),
                "=",
                numbered(vectors, f"${letter.upper()}$", letter, show_shape=True),
            ]
            board.product(parts, 0, y)
            y -= step
    caption = (
        "The words are the rows of X, so one product gives the queries of all words: row 1 of Q is "
        f"{board.row(one.q[0])}, the q1 of “{example.words[0]}”. K and V are computed in the same way, with "
        "their own weights."
    )
    return Drawing(board.figure, caption)


@figure("F36", "softmax(QKᵀ / √d_k) V = Z", "datawhale", "FW", "5.1", make_example)
def attention_as_matrices(example: Example, *, head: int = 0) -> Drawing:
    """Draw steps two to six of a head in one formula, and below it the same with the weights written out."""
    one, rows = example.head(head), example.words
    d_head = one.q.shape[1]
    value = numbered(one.v, "$V$", "v", show_shape=True)
    result = numbered(one.z, "$Z$", "z", show_shape=True)
    with new_board(rows, matrices=[one.q, one.k, one.v, one.z, one.weights], names=rows) as board:
        # softmax(Q × Kᵀ over √d_k) with the line at height 0
        tall = max(*one.q.shape) * 0.27
        q, k = numbered(one.q, "$Q$", "q", rows=rows), numbered(one.k.T, "$K^T$", "k")
        _, second = board.product([q, "×", k], widest(rows, 9) + 0.07, tall / 2 + 0.15)
        right, middle = second.right, second.right / 2
        board.arrow((0, 0), (right, 0), head=False)
        board.text(middle, -0.25, f"$\\sqrt{{d_k}}$ = √{d_head}", size=12)
        for x, side in ((-0.17, "left"), (right + 0.17, "right")):
            board.bracket(x, -0.45, tall + 0.5, side)
        board.text(-0.4, 0, "softmax", size=13, ha="right")
        beyond = right + 0.45
        board.product(["×", value, "=", result], beyond, 0)
        low = -(0.27 * len(rows) + board.band(rows) + 1.28)
        weights = numbered(one.weights, "", SHARES, edge="z", rows=rows, columns=rows)
        placed = board.grid_at(weights, middle, low)
        note = "the weights: each row is a query, and sums to 1"
        board.text(middle, placed.top + board.band(rows) + 0.18, note, va="bottom")
        board.arrow((middle, -0.5), (middle, placed.top + board.band(rows) + 0.4))
        board.product(["×", value, "=", result], beyond, low)
    shares = listed(f"{board.write(w)} for “{word}”" for w, word in zip(one.weights[0], rows, strict=True))
    caption = (
        f"All steps in one formula: the softmax makes each row of QKᵀ / √{d_head} sum to 1, and “{rows[0]}” "
        f"has weights {shares}. Multiplied by V, they give row 1 of Z, {board.row(one.z[0])}."
    )
    return Drawing(board.figure, caption)


def _weight_name(letter: str) -> str:
    return f"$W^{letter.upper()}$"


# One word, step by step, with invented scores.

SCORES = (112.0, 96.0)
SHOWN = 3  # the number of the d_k numbers of a vector that are drawn
ROW = 0.52  # inches from one step to the next
DOWN = 0.12  # additional space before the last step, for its arrows


class Steps(NamedTuple):
    """The attention of one word to all words. The rows of the arrays are words."""

    words: list[str]
    q: Any  # (T, K)
    k: Any
    v: Any
    raw: Any  # (T,) q1 · k before the scale
    scaled: Any  # (T,)
    weights: Any  # (T,)
    z: Any  # (K,)


def steps_of_one_word(
    sentence: str = MACHINES, *, scores: Sequence[float] = SCORES, d_k: int = 64, seed: int = SEED
) -> Steps:
    """Compute attention over vectors whose first query has the given scores.

    Args:
        sentence, scores: The sentence, and the scores of its first word, one for each word.
        d_k, seed: The width of the queries and the keys, and the seed of the random weights.
    """
    words = words_of(sentence)
    q, k, v = vectors_with(words, scores, d_k, seed)
    y, cache = attention(q, k, v)
    _, unscaled = attention(q, k, v, scale=1.0)
    return Steps(words, q, k, v, unscaled.scores[0], cache.scores[0], cache.weights[0], y[0])


def vectors_with(
    words: list[str], scores: Sequence[float], d_k: int, seed: int
) -> tuple[Array, Array, Array]:
    """Return random q, k, v with q1 · k_j = scores[j], in multiples of 1/4, so that the sums are exact.

    Args:
        words, scores: The words of the sentence, and the scores of the first one, one for each word.
        d_k, seed: The width of the queries and the keys, and the seed of the random weights.

    Raises:
        UserError: If there is not one score for each word, or d_k is below 1.
    """
    if len(scores) != len(words) or not all(isinstance(s, int | float) and math.isfinite(s) for s in scores):
        raise UserError(f"scores is {scores!r}: give one number for each of the {len(words)} words")
    if not isinstance(d_k, int) or not 1 <= d_k <= 4096:
        raise UserError(f"d_k is {d_k!r}: give a whole number from 1 to 4096")
    rng = generator(seed)
    q = rng.integers(-6, 7, (len(words), d_k)) / 4  # (T, K)
    q[0, -1] = 1
    first, noise = q[0], rng.standard_normal((len(words), d_k))
    along = (np.asarray(scores) - noise @ first) / (
        first @ first
    )  # (T,) the component along q1 that each key needs
    k = np.round(4 * (noise + along[:, None] * first)) / 4
    k[:, -1] += scores - k @ first  # the remainder of the rounding, at the place where q1 is 1
    return q, k, rng.standard_normal((len(words), d_k))


# F32 to F34: the same columns, down to step 1, 3 and 5.


@figure("F32", "Scores of one word", "datawhale", "FW", "5.1", steps_of_one_word)
def scores(s: Steps) -> Drawing:
    """Draw each score as the dot product of the first word's query with a word's key."""
    caption = (
        f"The scores of “{s.words[0]}” are the dot products of its query with the keys of all words, its "
        f"own included: {listed(map(whole, s.raw))}. The vectors, of {s.q.shape[1]} numbers each, were "
        "constructed to give these scores."
    )
    return Drawing(_draw(s, 1), caption)


@figure("F33", "Scores to weights", "datawhale", "FW", "5.1", steps_of_one_word)
def softmax_of_scores(s: Steps) -> Drawing:
    """Draw the scores divided by √d_k, and their softmax."""
    _, plain = attention(s.q, s.k, s.v, scale=1.0)
    d_k = s.q.shape[1]
    caption = (
        f"Divided by √{d_k} = {whole(math.sqrt(d_k))}, the scores are {listed(map(whole, s.scaled))}, and "
        f"the softmax turns them into weights that sum to 1: {listed(number(w, 4) for w in s.weights)}. "
        f"Without the division the weights would be {listed(number(w, 4) for w in plain.weights[0])}: for "
        "large scores the softmax gives almost all weight to one word."
    )
    return Drawing(_draw(s, 3), caption)


@figure("F34", "Weights times values", "datawhale", "FW", "5.1", steps_of_one_word)
def sum_of_values(s: Steps) -> Drawing:
    """Draw every value times its weight, and their sum z1."""
    sums = " + ".join(f"{number(w)} · ({number(v)})" for w, v in zip(s.weights, s.v[:, 0], strict=True))
    caption = (
        "Every value is multiplied by its weight, so words with small weights contribute little. The sum is "
        f"z1, the output of self-attention for “{s.words[0]}”. Its first number is {sums} = {number(s.z[0])}."
    )
    return Drawing(_draw(s, 5), caption)


def _draw(s: Steps, steps: int) -> Figure:
    """Draw the columns of the words down to a step: 1 score, 2 scaled, 3 softmax, 4 weighted, 5 sum."""
    shown = slice(0, min(SHOWN, s.q.shape[1]))
    weighted = s.weights[:, None] * s.v  # (T, K)
    d_k = s.q.shape[1]
    names = ["input", "query", "key", "value", "score", f"÷ √{d_k} = {whole(math.sqrt(d_k))}", "softmax"]
    names = [*names, "softmax × value", "sum"][: 4 + steps]
    with new_board(s.words, matrices=[a[..., shown] for a in (s.q, s.k, s.v, weighted, s.z)]) as board:
        width = board.cell * shown.stop
        places = (max(width, widest(s.words, 12)) + (1.5 if steps >= 4 else 1.1)) * np.arange(len(s.words))
        edge = places[0] - width / 2 - (0.9 if steps >= 4 else 0.7)
        for row, name in enumerate(names):
            board.text(edge, -ROW * row - (DOWN if row == 8 else 0), name, size=10, ha="right")
        for i, x in enumerate(places):
            board.text(x, 0, s.words[i], size=12, parse_math=False)
            for row, (letter, values) in enumerate((("q", s.q), ("k", s.k), ("v", s.v)), 1):
                _vector(board, values[i, shown], letter, i, (x, -ROW * row), letter, d_k)
            board.text(x, -4 * ROW, f"$q_1 \\cdot k_{{{i + 1}}}$ = {whole(s.raw[i])}", size=12)
            if steps >= 2:
                board.text(x, -5 * ROW, whole(s.scaled[i]), size=12)
            if steps >= 3:
                board.text(x, -6 * ROW, board.write(s.weights[i]), size=12, weight="bold")
            if steps >= 4:
                faded = paler("v", s.weights[i])
                _vector(
                    board, weighted[i, shown], "v", i, (x, -7 * ROW), faded, d_k, board.write(s.weights[i])
                )
        if steps >= 5:
            for left, right in pairwise(places):
                board.text((left + right) / 2 - 0.12, -7 * ROW, "+", size=15)
            placed = _vector(board, s.z[shown], "z", 0, (places[0], -8 * ROW - DOWN), "z", d_k)
            x = (placed.right + 0.25, placed.centre[1])
            if len(places) > 1:
                end = places[-1]
                board.arrow((end, -7 * ROW - 0.16), (end, x[1]), x)
            board.arrow((places[0], -7 * ROW - 0.14), (places[0], placed.top))
    return board.figure


def _vector(
    board: Board,
    values: Array,
    letter: str,
    i: int,
    place: tuple[float, float],
    colour: str,
    d_k: int,
    factor: str = "",
) -> Placed:
    """Draw the first numbers of a vector, followed by dots if there are more."""
    x, y = place
    name = f"{factor} ${letter}_{{{i + 1}}}$".strip()
    cells = numbered(values, name, colour, edge=letter)
    placed = board.grid_at(cells, x, y, label="left")
    if d_k > len(values):
        board.text(placed.right + 0.05, y, "…", ha="left")
    return placed


def whole(value: float) -> str:
    """Return a number without trailing zeros: 112, 14, 12.5."""
    return f"{round(float(value), 2):g}".replace("-", "−")
