"""F54 and F58: weighted means of vectors: attention without parameters, and soft and hard attention."""

from collections.abc import Callable, Sequence

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional import attend, dot_similarity, hard_attend
from npformer.functional.attention import attention
from npformer.functional.hard import HardAttendCache
from npformer.learn.figures.datawhale_example import WordVectors, embedded
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.boxes import Point
from npformer.plots.cells import CELL
from npformer.plots.style import FORMULA, LABEL, widest

DRAWS = 1000
SHOWN = 5  # the number of draws in the table
APART = 1.0  # between the two pictures, in inches
MEAN = r"$E[\hat z] = \Sigma_i\; \alpha_i\, a_i$"
ONE = r"$\hat z = \Sigma_i\; s_i\, a_i$"
SAMPLED = r"s \sim \mathrm{Multinoulli}(\alpha)"  # as the document writes it


@figure("F54", "Soft and hard attention", "paperspace", "FW", "19.1", embedded, sentence="the dog saw birds")
def soft_and_hard(vectors: WordVectors, *, query: int = 2) -> Drawing:
    """Draw E[ẑ] = Σ_i α_i a_i beside ẑ = Σ_i s_i a_i with s ~ Multinoulli(α), and the mean of many draws.

    `query` is the position of the word whose attention is drawn.
    """
    words, a, seed = vectors
    _require_word(query, words)
    scores, _ = dot_similarity(a[query : query + 1], a)  # (1, S)
    mean, soft = attend(scores, a)  # (1, D)
    z, hard = hard_attend(scores, a, rng=np.random.default_rng(seed), draws=DRAWS)  # (N, 1, D)
    what = f"a sentence of {len(words)} words"
    with new_board(words, matrices=[a, z, soft.weights], names=words, what=what) as board:
        step = max(board.cell, widest(words, 11)) + 0.5
        places = step * np.arange(len(words))
        columns = [numbered(each[:, None], f"$a_{{{i}}}$", "v") for i, each in enumerate(a, 1)]
        total = _weighted_mean(board, places, words, query, columns, soft.weights[0])
        board.arrow(total, (total[0], board.grid_at(numbered(mean, MEAN, "z"), total[0], 2.85).bottom))
        right = places + max(places[-1] + board.cell, a.shape[1] * board.cell) + APART
        # the first draw as integers, because 0 and 1 are not probabilities here
        drawn = hard.sample[0, 0].astype(int)
        total = _weighted_mean(board, right, words, query, columns, drawn)
        board.arrow(total, (total[0], board.grid_at(numbered(z[0], ONE, "z"), total[0], 2.85).bottom))
        _heading(board, places, "soft attention", r"\alpha", soft.weights[0])
        _heading(board, right, "hard attention", rf"{SAMPLED},\ \ s", drawn)
        _table(board, (places[0] + right[-1]) / 2, -CELL * a.shape[1] - 1.35, words, z, hard, mean)
    best = int(hard.weights[0].argmax())
    off = float(np.abs(z.mean(0) - mean).max())
    return Drawing(
        board.figure,
        f"The query of “{words[query]}” gives every vector a weight, α = softmax(a{query + 1} · ai). "
        "Soft attention takes their weighted mean. Hard attention reads one of them: s ~ Multinoulli(α) "
        "is 1 for one word, which is drawn with the probabilities α, and 0 for the others; at inference "
        f"the most probable one is taken, “{words[best]}” ({board.write(hard.weights[0, best])}). On "
        f"average the two agree: the mean of {len(z)} draws is within {board.write(off)} of E[ẑ].",
    )


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
        board.grid(numbered(s, "", "r", rows=names, columns=columns, shade=True), left, top)
        board.grid(numbered(values, "", "z"), beside, top)
        top -= len(s) * CELL + 0.12
    over = start + board.band(words) + 0.12
    board.text(left + n * board.cell / 2, over, f"${SAMPLED}$", size=FORMULA, va="bottom")
    board.text(beside + z.shape[-1] * board.cell / 2, over, r"$\hat z$", size=FORMULA, va="bottom")


HIGH = 0.27  # of a cell, in inches
WIDEST = 6.0  # points, the line of a weight of 1
FAINTEST = 0.02  # smaller weights have a thin dashed line


@figure("F58", "Basic self-attention", "paperspace", "FW", "4.1", embedded, sentence="the dog saw the bird")
def basic_self_attention(vectors: WordVectors, *, query: int = 2) -> Drawing:
    """Draw y_i = Σ_j w_ij x_j, with weights that are the softmax of x_i · x_j. `query` is i."""
    words, x, _ = vectors
    _require_word(query, words)
    y, cache = attention(x, x, x, scale=1.0)
    weights = cache.weights[query]  # (T,)
    with new_board(words, matrices=[x, y, cache.weights], names=words) as board:
        places = (max(board.cell, widest(words, 11)) + 0.62) * np.arange(len(words))
        columns = [numbered(each[:, None], f"$x_{{{j}}}$", "x") for j, each in enumerate(x, 1)]
        total = _weighted_mean(board, places, words, query, columns, weights)
        result = numbered(y[query][None], f"$y_{{{query + 1}}}$", "z")
        board.arrow(total, (total[0], board.grid_at(result, total[0], 2.75, label="left").bottom))
        table = numbered(cache.weights, "$w_{ij}$", "r", rows=words, columns=words, shade=True)
        left = places[-1] + board.cell / 2 + 0.8 + widest(words, 9)
        beside = board.grid(table, left, 0.45 + HIGH * len(words) / 2)
        board.text(beside.centre[0], beside.bottom - 0.1, "each row is a query", va="top")
        high = beside.top - query * HIGH
        board.mark(beside.left, high - HIGH, beside.right, high)
    return Drawing(board.figure, _caption(words, query, weights, board.write))


def _require_word(query: int, words: Sequence[str]) -> None:
    """Raise a UserError unless a query is the position of a word."""
    if not isinstance(query, int) or not 0 <= query < len(words):
        raise UserError(f"query is {query!r}: there are words 0 .. {len(words) - 1}")


def _weighted_mean(
    board: Board,
    places: np.ndarray,
    words: Sequence[str],
    query: int,
    columns: Sequence[Grid],
    weights: Array,
) -> Point:
    """Draw vectors above their words, and lines from them through ⊗ to Σ, each as wide as its weight.

    The tops of the vectors are at height 0. Return the place above Σ.
    """
    middle = places.mean()
    for j, (place, cells) in enumerate(zip(places, columns, strict=True)):
        below = board.grid(cells, place - board.cell / 2, 0, label="below").bottom - 0.42
        weight = "bold" if j == query else "normal"
        board.text(place, below, words[j], size=11, weight=weight, va="top", parse_math=False)
    for place, weight in zip(places, weights, strict=True):
        for stretch in (((place, 0), (place, 0.53)), ((place, 0.79), (middle, 1.95))):
            if weight < FAINTEST:
                board.arrow(*stretch, head=False, width=0.6, colour="faint", dashed=True)
            else:
                board.arrow(*stretch, head=False, width=WIDEST * weight)
        board.sign(place, 0.66, "×")
        board.text(place + 0.17, 0.66, board.write(weight), ha="left", size=10)
    board.sign(middle, 2.06, "Σ", radius=0.18)
    return middle, 2.24


def _caption(words: list[str], query: int, weights: Array, write: Callable[..., str]) -> str:
    j = int(weights.argmax())
    text = (
        f"Every output is a weighted mean of all inputs, y{query + 1} = Σ w{query + 1}j xj, and nothing is "
        f"learned: the weights are the softmax of the dot products of “{words[query]}” with every word. The "
        f"largest, {write(weights[j])}, is that of “{words[j]}”."
    )
    twice = [word for word in dict.fromkeys(words) if words.count(word) > 1]
    if twice:
        text += f" Every “{twice[0]}” has the same weight, because without positions their vectors are equal."
    return text
