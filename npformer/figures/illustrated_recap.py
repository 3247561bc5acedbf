"""All of multi-head attention on one sheet, in five steps."""

import numpy as np

from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import MACHINES, SEED, Example, example
from npformer.figures.illustrated_heads import HIGH, output_weight
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.style import drawing, widest, wrapped

GAP = 0.5  # between columns, in inches; arrows stand there
NAME = 0.32  # for a name at the left of a matrix
APART = 0.12  # between the weights of a head


@figure("F40", "Multi-head attention on one sheet", source="S2", data="FW")
def recap(
    studio, *, sentence: str = MACHINES, n_heads: int = 8, d_model: int = 4, seed: int = SEED
) -> Drawing:
    """Sentence → X → weights of each head → Q, K, V → Z of each head → W^O → Z."""
    seen = example(sentence, n_heads=n_heads, d_model=d_model, seed=seed)
    shown = sorted({0, 1, n_heads - 1} & set(range(n_heads)))
    with drawing(seen.words):
        arrays = [array for number in shown for array in seen.head(number)]
        board = Board([seen.x, seen.r, seen.z, seen.output_weight, *arrays], decimals=1, margin=0.06)
        width = seen.head(0).q.shape[1] * board.cell
        given = d_model * board.cell
        steps = [given + GAP, 3 * width + 2 * APART + GAP + NAME, width + GAP, width + GAP, given + GAP]
        lefts = np.cumsum([0, *steps])  # of X, W, Q K V, the head's Z, W^O, Z
        row = max(d_model * HIGH + 1.0, (3 * len(seen.words) + 1) * HIGH + 0.68)
        heights = [-row * (i + 0.5) for i in range(len(shown))]
        middle = (heights[0] + heights[-1]) / 2
        _inputs(board, seen, middle)
        for number, y in zip(shown, heights, strict=True):
            _head(board, seen, number, lefts, y)
        if n_heads > 3:
            board.text(lefts[1] + 1.5 * width, (heights[1] + heights[2]) / 2 + 0.1, "…", size=20, rotation=90)
        _wires(board, lefts, heights, middle, width, d_model)
        tall = seen.output_weight.shape[0] * HIGH
        board.text(lefts[4] + 2 * board.cell, middle + tall / 2 + 0.08, "$W^O$", size=12, va="bottom")
        output_weight(board, seen, lefts[4], middle + tall / 2)
        result = Grid(seen.z, "$Z$", "z", numbers=True, show_shape=True)
        board.grid(result, lefts[5], middle + len(seen.words) * HIGH / 2)
        _headings(board, seen, lefts, width, max(0.15, middle + tall / 2 + 0.5))
        picture = board.cut()
    caption = (
        "The whole of multi-head attention, with the numbers of the figures before, rounded: "
        f"“{seen.words[0]}” goes in as {board.row(seen.x[0])} and comes out as "
        f"{board.row(seen.z[0])}. Only the first layer starts from the embeddings X; "
        "every other starts from R, the output of the layer below."
    )
    return Drawing(picture, caption)


def _inputs(board: Board, seen: Example, middle: float) -> None:
    """X, or R where a layer stands below."""
    x = Grid(seen.x, "$X$", "x", rows=seen.words, numbers=True)
    r = Grid(seen.r, "$R$", "r", rows=seen.words, numbers=True)
    high = HIGH * len(seen.words)
    board.grid(x, 0, middle + high / 2)
    placed = board.grid(r, 0, middle - high / 2 - 1.05)
    end = placed.right - 0.02
    board.text(end, placed.top + 0.62, "or, above the first layer,", ha="right", va="bottom")
    board.text(end, placed.top + 0.45, "the output of the layer below", ha="right", va="bottom")
    y = middle + high / 2
    board.arrow((placed.centre[0], y + 0.75), (placed.centre[0], y + 0.36))
    board.text(end, y + 0.82, " ".join(seen.words), size=12, ha="right", va="bottom", parse_math=False)


def _head(board: Board, seen: Example, number: int, lefts, y: float) -> None:
    """One head: its weights, its Q, K and V one under another, its Z."""
    one = seen.head(number)
    rows, columns = one.wq.shape
    high, width = HIGH * len(one.q), columns * board.cell
    for i, (letter, weight, made) in enumerate(zip("qkv", one[:3], one[3:6], strict=True)):
        name = letter.upper()
        grey = Grid(weight, f"$W^{name}_{{{number}}}$", "weight", letter, numbers=True)
        board.grid(grey, lefts[1] + i * (width + APART), y + HIGH * rows / 2)
        cells = Grid(made, f"${name}_{{{number}}}$", letter, numbers=True)
        board.grid(cells, lefts[2], y + 1.5 * high + HIGH / 2 - i * (high + HIGH / 2), label="left")
    board.grid(Grid(one.z, f"$Z_{{{number}}}$", "z", numbers=True), lefts[3], y + high / 2)


def _wires(board: Board, lefts, heights, middle: float, width: float, d_model: int) -> None:
    """Arrows from column to column: X to every head, every head's Z to W^O."""
    out = d_model * board.cell  # the right edge of X
    for y in heights:
        bend, end = out + 0.16, lefts[1] - 0.06
        board.arrow((out + 0.04, middle), *([] if y == middle else [(bend, middle), (bend, y)]), (end, y))
        board.arrow((lefts[2] - NAME - GAP + 0.06, y), (lefts[2] - NAME - 0.04, y))
        board.arrow((lefts[2] + width + 0.06, y), (lefts[3] - 0.06, y))
        bend, end = lefts[3] + width + 0.25, lefts[4] - 0.04
        board.arrow(
            (lefts[3] + width + 0.06, y), *([] if y == middle else [(bend, y), (bend, middle)]), (end, middle)
        )
    board.text((lefts[4] + out + lefts[5]) / 2, middle, "=", size=15)


def _headings(board: Board, seen: Example, lefts, width: float, y: float) -> None:
    """The five steps over the columns."""
    start = -widest(seen.words, 9) - 0.07
    ends = [lefts[1] - 0.2, lefts[2] - NAME - 0.2, lefts[4] - 0.3, lefts[5] + width + board.cell]
    steps = [
        (start, "1  The sentence,\n2  a vector for each word"),
        (lefts[1], f"3  X (or R) times the weights of each of the {seen.n_heads} heads"),
        (lefts[2] - NAME, "4  Attention with each head's Q, K and V gives its Z"),
        (lefts[4], f"5  The {seen.n_heads} Z side by side,\ntimes $W^O$, make one Z"),
    ]
    for (x, text), end in zip(steps, ends, strict=True):
        board.text(x, y, wrapped(text, end - x, 12), size=12, ha="left", va="bottom")
