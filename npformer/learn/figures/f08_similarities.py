"""F08: the three steps of attention, with the four similarity functions below each other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.errors import UserError
from npformer.learn.figures.jianshu_example import SEED, SENTENCE, PaddedSentence, dataset, listed
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.cells import CELL
from npformer.plots.style import FORMULA, LABEL, TEXT, widest

STEP = 0.72  # from one similarity's row to the next, in inches
FORMULAS = {
    "dot": r"$q^T k$",
    "general": r"$q^T W k$",
    "concat": r"$w^T\,[\,q\,;\,k\,]$",
    "perceptron": r"$v^T \tanh(Wq + Uk)$",
}
HEADINGS = (
    "similarity",
    "1  scores  $s = f(q, k)$",
    "2  weights  $a = softmax(s)$",
    r"3  $z = \Sigma\, a\, v$",
)


class Attended(NamedTuple):
    """The attention of one query with one similarity function."""

    scores: Any  # (1, S)
    weights: Any  # (1, S)
    z: Any  # (1, D)


def _attend(name: str, q: Array, k: Array, v: Array, rng: np.random.Generator) -> Attended:
    """Compute scores, weights and output with a similarity function, whose weights are drawn from rng.

    Shapes: q (1, D), k (S, D), v (S, D).
    """
    width = q.shape[-1]

    def drawn(*shape: int) -> Array:
        numbers: Array = rng.standard_normal(shape) / np.sqrt(width)
        return numbers.astype(q.dtype)

    if name == "dot":
        scores, _ = F.dot_similarity(q, k)
    elif name == "general":
        scores, _ = F.general_similarity(q, k, drawn(width, width))
    elif name == "concat":
        scores, _ = F.concat_similarity(q, k, drawn(2 * width))
    else:
        # weights of size 1, so that the tanh is used beyond its almost linear middle
        w, u, v_out = drawn(width, width), drawn(width, width), drawn(width)
        scores, _ = F.perceptron_similarity(q, k, w, u, np.sqrt(width).astype(q.dtype) * v_out)
    weights, _ = F.softmax(scores)
    return Attended(scores, weights, weights @ v)


@figure("F08", "Three steps, four similarities", "jianshu", "FW", "4.5")
def similarities(*, sentence: str = SENTENCE, word: int = 3, d_model: int = 6, seed: int = SEED) -> Drawing:
    """Draw one query that attends to the same keys with four similarity functions, whose weights are random.

    Args:
        sentence, word: An English sentence, and the position of the query in it.
        d_model, seed: The width of the vectors, and the seed of the random weights.
    """
    length = len(dataset().source.words(sentence)) + 1  # the end symbol; no padding here
    if not 0 <= word < length:
        raise UserError(f"word is {word}: the sentence has words 0 .. {length - 1}")
    example = PaddedSentence(sentence, length, d_model, seed).example()
    q, k, v = (values[0, 0] for values in example.attend()[1].attention[:3])
    q = q[word : word + 1]  # (1, D)
    rng = np.random.default_rng(seed)
    results = {name: _attend(name, q, k, v, rng) for name in FORMULAS}
    with new_board(
        example.words, matrices=[q, k, v, *(values for four in results.values() for values in four)]
    ) as board:
        left = widest(["perceptron"], LABEL) + 1.75
        # the query, the keys and the values, which all four share
        top = (len(FORMULAS) - 0.1) * STEP + 1.1 + len(example.words) * CELL
        wide = board.size(Grid(q))[0]
        mine = f"$q$ of “{example.words[word]}”"
        board.grid(numbered(q, mine, "q"), 0.0, top)
        board.grid(numbered(k, "$K$", "k", rows=example.words), left + 0.8, top)
        board.grid(numbered(v, "$V$", "v", rows=example.words), left + wide + 2.3, top)
        _table(board, results, example.words, left)
    parts = []
    for name, four in results.items():
        best = int(four.weights[0].argmax())
        parts.append(f"{name} “{example.words[best]}” ({listed(four.weights[0, best])})")
    return Drawing(
        board.figure,
        f"The query of “{example.words[word]}” is compared with the same keys by four similarity "
        "functions (W, w, U and v are random). Softmax and weighted sum follow. The largest weights: "
        f"{', '.join(parts)}. The concat score adds a term of the query to a term of the key. The first "
        "is equal for all keys and cancels in the softmax, so every query gets the same weights.",
    )


def _table(board: Board, results: dict[str, Attended], words: Sequence[str], left: float) -> None:
    """Draw a row for each similarity function: its formula, the scores, the weights, and z."""
    across = board.size(Grid(results["dot"].scores))[0]
    places = [left, left + across + 0.45, left + 2 * (across + 0.45)]
    high = len(FORMULAS) * STEP
    for index, (name, four) in enumerate(results.items()):
        y = high - (index + 0.5) * STEP
        board.text(0, y + 0.11, name, size=LABEL, ha="left", weight="bold")
        board.text(0.0, y - 0.16, FORMULAS[name], size=FORMULA, ha="left")
        grids = [
            numbered(four.scores, "", "attention", "k", columns=words if index == 0 else None),
            numbered(four.weights, "", "r", shade=True, columns=words if index == 0 else None),
            numbered(four.z, "", "z"),
        ]
        placed = [board.grid(grid, x, y + CELL / 2) for grid, x in zip(grids, places, strict=True)]
        for before, after in pairwise(placed):
            board.arrow((before.right + 0.06, y), (after.left - 0.06, y))
    over = high - 0.5 * STEP + CELL / 2 + widest(words, TEXT) + 0.2
    for x, heading in zip([0.0, *places], HEADINGS, strict=True):
        board.text(x, over, heading, size=LABEL, ha="left", va="bottom")
