"""F19: three heads, their concatenation and the linear map W^O, as matrices."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import split_heads
from npformer.learn.figures.jianshu_example import Example, PaddedSentence, listed
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots.board import BETWEEN, Board, new_board, numbered, paler
from npformer.plots.cells import CELL, Placed
from npformer.plots.palette import head_colour
from npformer.plots.style import TEXT, widest


@figure("F19", "Three heads, concatenated, then a linear map", "jianshu", "FW", "7.2 7.3", PaddedSentence)
def three_heads(padded: PaddedSentence, *, n_heads: int = 3) -> Drawing:
    """Draw each head's weights times its values, the concatenated heads, and their product with W^O."""
    example = padded.example(n_heads=n_heads, output=True)
    y, cache = example.attend(keys=True, queries=True)
    assert cache.output is not None
    concat, weight = cache.output.x, cache.output.weight  # (1, T, H·K), (H·K, D)
    heads = split_heads(concat, n_heads)[0]  # (H, T, K)
    attention = cache.attention
    with new_board(example.words, matrices=[attention.weights, attention.v, concat, weight, y]) as board:
        # for each head its weights, and below them × V = Z
        weights, v = attention.weights[0], attention.v[0]
        pad, mask = example.padded, example.mask(causal=False)
        side = len(example.words) * board.cell
        step = max(side, 2 * v.shape[-1] * board.cell + 0.9) + 0.45
        first = widest(example.words, TEXT) + 0.1
        placed = []
        for head in range(len(weights)):
            rows = None if head else example.words
            style: dict[str, Any] = {"shade": True, "mask": mask, "painted": [("padding", pad[:, None])]}
            name = f"weights of head {head}"
            grid = numbered(weights[head], name, _tint(head), rows=rows, columns=example.words, **style)
            top = board.grid(grid, first + head * step, 0)
            values = numbered(v[head], f"$V_{head}$", "v", padded=pad)
            result = numbered(heads[head], f"$Z_{head}$", _tint(head), padded=pad)
            half = len(example.words) * CELL / 2
            placed.append(board.product(["×", values, "=", result], top.left, top.bottom - 0.42 - half)[-1])
        _linear(board, example, concat[0], weight, y[0], placed)
    t = 0
    largest = [f"“{example.words[int(w[t].argmax())]}” ({listed(w[t].max())})" for w in attention.weights[0]]
    return Drawing(
        board.figure,
        f"Each head has its own weights: in heads 0 to {n_heads - 1}, “{example.words[t]}” attends most to "
        f"{', '.join(largest)}. The heads' outputs, each {heads.shape[-1]} wide, are concatenated, and the "
        f"{weight.shape[0]} × {weight.shape[1]} matrix W^O mixes them.",
    )


def _tint(head: int) -> str:
    return paler(head_colour(head), 0.42)


def _linear(
    board: Board, example: Example, concat: Array, weight: Array, y: Array, heads: list[Placed]
) -> None:
    """Draw concat · W^O = the output, and arrows from every Z to its columns."""
    wide = concat.shape[1] // len(heads)
    pad = example.padded
    owner = np.arange(concat.shape[1]) // wide  # the head of each column
    blocks = [(_tint(head), (owner == head) & ~pad[:, None]) for head in range(len(heads))]
    low = min(place.bottom for place in heads) - 1.15
    joined = numbered(concat, "", "z", rows=example.words, padded=pad, painted=blocks, show_shape=True)
    middle = low - len(concat) * CELL / 2
    left = heads[0].left - board.cell
    first = board.grid(joined, left, low)
    factor = numbered(weight, "$W^O$", "weight", "z", show_shape=True)
    output = numbered(y, "output", "z", padded=pad, show_shape=True)
    board.product(["×", factor, "=", output], first.right + BETWEEN, middle)
    for head, place in enumerate(heads):
        x = first.left + (head + 0.5) * wide * board.cell
        level = low + 0.72 - 0.17 * head
        start = (place.centre[0], place.bottom - 0.04)
        points = [start, (start[0], level), (x, level), (x, low + 0.05)]
        board.arrow(*points, colour=head_colour(head))
    board.text(first.left - 0.15, low + 0.2, "concat", size=TEXT, ha="right")
