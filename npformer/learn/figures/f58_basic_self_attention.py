"""F58: self-attention in its simplest form, without queries, keys and values, and without parameters."""

from collections.abc import Callable
from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.attention import attention
from npformer.learn.figures.datawhale_example import WordVectors, embedded
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board, paler
from npformer.plots.style import drawing, widest

HIGH = 0.27  # of a cell, in inches
WIDEST = 6.0  # points, the line of a weight of 1
FAINTEST = 0.02  # smaller weights have a thin dashed line


@figure("F58", "Basic self-attention", "paperspace", "FW", partial(embedded, sentence="the dog saw the bird"))
def basic_self_attention(vectors: WordVectors, *, query: int = 2) -> Drawing:
    """Draw y_i = Σ_j w_ij x_j, with weights that are the softmax of the dot products x_i · x_j.

    Args:
        vectors: The words and their vectors.
        query: The position i of the word whose output is drawn.
    """
    words, x, _ = vectors
    if not isinstance(query, int) or not 0 <= query < len(words):
        raise UserError(f"query is {query!r}: there are words 0 .. {len(words) - 1}")
    y, cache = attention(x, x, x, scale=1.0)
    weights = cache.weights[query]  # (T,)
    with drawing(words):
        board = Board([x, y, cache.weights], names=words)
        places = (max(board.cell, widest(words, 11)) + 0.62) * np.arange(len(words))
        bottom = -HIGH * x.shape[1]  # of the vectors, whose tops are at 0
        for j, place in enumerate(places):
            cells = Grid(x[j][:, None], f"$x_{{{j + 1}}}$", "x", numbers=True)
            board.grid(cells, place - board.cell / 2, 0, label="below")
            weight = "bold" if j == query else "normal"
            board.text(place, bottom - 0.42, words[j], size=11, weight=weight, va="top", parse_math=False)
        middle = places.mean()
        weighted_sum(board, places, weights)
        result = Grid(y[query][None], f"$y_{{{query + 1}}}$", "z", numbers=True)
        placed = board.grid_at(result, middle, 2.75, label="left")
        board.arrow((middle, 2.24), (middle, placed.bottom))
        table = Grid(
            cache.weights, "$w_{ij}$", paler("z", 0.45), edge="z", rows=words, columns=words, numbers=True
        )
        left = places[-1] + board.cell / 2 + 0.8 + widest(words, 9)
        beside = board.grid(table, left, 0.45 + HIGH * len(words) / 2)
        board.text(beside.centre[0], beside.bottom - 0.1, "each row is a query", va="top")
        high = beside.top - query * HIGH
        board.mark(beside.left, high - HIGH, beside.right, high)
        picture = board.cut()
    return Drawing(picture, _caption(words, query, weights, board.write))


def weighted_sum(board: Board, places: np.ndarray, weights: Array) -> None:
    """Draw lines from the vectors, whose tops are at height 0, through ⊗ to Σ, each as wide as its weight.

    Args:
        board: The board to draw on.
        places: The centres of the vectors, (T,).
        weights: The weights, (T,).
    """
    middle = places.mean()
    for j, place in enumerate(places):
        for stretch in (((place, 0), (place, 0.53)), ((place, 0.79), (middle, 1.95))):
            if weights[j] < FAINTEST:
                board.arrow(*stretch, head=False, width=0.6, colour="faint", dashed=True)
            else:
                board.arrow(*stretch, head=False, width=WIDEST * weights[j])
        board.sign(place, 0.66, "×")
        board.text(place + 0.17, 0.66, board.write(weights[j]), ha="left", size=10)
    board.sign(middle, 2.06, "Σ", radius=0.18)


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
