"""F06: the paper's four formulas as cards, each with numbers that npformer computes from it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.functional import attention
from npformer.functional.positions import sinusoids
from npformer.learn.figures.jianshu_example import at_least, listed
from npformer.learn.figures.registry import Drawing, figure
from npformer.nn import FeedForward
from npformer.nn.attention import MultiHeadAttention
from npformer.plots import Figure
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import rounded
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import LABEL, line_height, text_size, widest

SIZE = 17.0  # points of a formula; the exponent of an exponent then has 8
EDGE, GAP = 0.22, 0.25  # inside a card, and between cards


# the heading, the colour and the formulas of each card
FORMULAS = (
    (
        "positional encoding",
        "position",
        r"$PE_{(pos,\,2i)} = \sin(pos\,/\,10000^{2i/d_{model}})$",
        r"$PE_{(pos,\,2i+1)} = \cos(pos\,/\,10000^{2i/d_{model}})$",
    ),
    ("position-wise feed-forward network", "feed_forward", r"$FFN(x) = \max(0,\; xW_1 + b_1)\,W_2 + b_2$"),
    (
        "scaled dot-product attention",
        "attention",
        r"$Attention(Q, K, V) = softmax\left(QK^T/\,\sqrt{d_k}\right)V$",
    ),
    (
        "multi-head attention",
        "linear",
        r"$MultiHead(Q, K, V) = Concat(head_1, \ldots, head_h)\,W^O$",
        r"$head_i = Attention(QW_i^Q,\; KW_i^K,\; VW_i^V)$",
    ),
)


class Card(NamedTuple):
    """A heading, one or two formulas, and lines with a numerical example."""

    heading: str
    colour: str
    formulas: Sequence[str]
    numbers: Sequence[str]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        widths = [text_size(f, SIZE, math=True)[0] for f in self.formulas]
        widths += [widest(self.numbers, LABEL), text_size(self.heading, LABEL, weight="bold")[0]]
        height = 0.32 + len(self.formulas) * 0.52 + 0.12 + len(self.numbers) * line_height(LABEL)
        return max(widths) + 2 * EDGE, height + 2 * EDGE


@figure("F06", "The formulas", "jianshu", "FO", "3 5.1 9.1 12.1")
def formula_cards(
    *,
    position: int = 1,
    d_positions: int = 4,
    x: Sequence[float] = (1.0, -2.0),
    products: Sequence[float] = (112.0, 96.0),
    d_head: int = 64,
    d_model: int = 512,
    n_heads: int = 8,
    seed: int = 2,
) -> Drawing:
    """Draw positions, feed-forward network, attention and multi-head attention, each with an example.

    Args:
        position, d_positions: The position whose vector is shown, and the width of the vector.
        x: The input of a random feed-forward network, 1 to 6 numbers.
        products: The dot products of a query with 1 to 6 keys.
        d_head: The width of a head in scaled dot-product attention.
        d_model, n_heads: The width of the model and the number of heads in multi-head attention.
        seed: The seed of the random weights.
    """
    at_least(0, position=position, seed=seed)
    at_least(1, d_positions=d_positions, d_head=d_head, d_model=d_model, n_heads=n_heads)
    for name, numbers in (("x", x), ("products", products)):
        if np.ndim(numbers) != 1 or not 1 <= len(numbers) <= 6:
            raise UserError(f"{name} is {numbers!r}: give 1 to 6 numbers")
    vector = sinusoids(position + 1, d_positions)[position]
    network = FeedForward(len(x), 4, rng=np.random.default_rng(seed), dtype=np.float64)
    y, through = network.forward(np.asarray(x, np.float64))
    k = np.repeat(np.asarray(products, np.float64)[:, None] / d_head, d_head, axis=1)  # (S, K)
    attended, layer = attention(np.ones((1, d_head)), k, k)[1], MultiHeadAttention(d_model, n_heads)
    examples = (
        [f"pos = {position}, d_model = {d_positions}:  {listed(vector, 5)}"],
        [f"x = ({listed(x)})", f"max(0, xW₁ + b₁) = ({listed(through.outer.x)})", f"FFN(x) = ({listed(y)})"],
        [
            f"q · k = {listed(products, 0)};  d_k = {d_head}",
            f"scaled: {listed(attended.scores)};  softmax: {listed(attended.weights)}",
        ],
        [
            f"d_model = {d_model}, h = {n_heads}:  each head is {layer.d_head} wide; the layer has "
            f"{layer.count_parameters():,} parameters"
        ],
    )
    cards = [
        Card(heading, colour, formulas, lines)
        for (heading, colour, *formulas), lines in zip(FORMULAS, examples, strict=True)
    ]
    return Drawing(
        _sheet(cards),
        f"The paper's formulas, each with a numerical example. The vector of position {position} is "
        f"({listed(vector, 5)}). With d_k = {d_head}, the dot products {listed(products, 0)} of a query with "
        f"its keys become the weights {listed(attended.weights)}.",
    )


def _sheet(cards: Sequence[Card]) -> Figure:
    """Draw the four cards, two in a row."""
    with new_board([card.numbers for card in cards]) as board:
        sizes = [card.size for card in cards]
        width = max(width for width, _ in sizes)
        heights = [max(sizes[0][1], sizes[1][1]), max(sizes[2][1], sizes[3][1])]
        for index, card in enumerate(cards):
            down, right = divmod(index, 2)
            _draw(board, card, right * (width + GAP), -down * (heights[0] + GAP), width, heights[down])
    return board.figure


def _draw(board: Board, card: Card, left: float, top: float, width: float, height: float) -> None:
    """Draw a card with its upper left corner at a place."""
    style: dict[str, Any] = {"edgecolor": "#5f6368", "linewidth": 1.1, "zorder": 1}
    size, face = (width, height), colour_of(card.colour)
    rounded(board.ax, (left, top - height), size, radius=0.12, facecolor=face, **style)
    board.take(left, top - height, left + width, top)
    x, y = left + EDGE, top - EDGE
    board.text(x, y, card.heading, size=LABEL, ha="left", va="top", weight="bold")
    for index, formula in enumerate(card.formulas):
        board.text(x, y - 0.58 - 0.52 * index, formula, size=SIZE, ha="left")
    y -= 0.32 + len(card.formulas) * 0.52 + 0.12
    for index, line in enumerate(card.numbers):
        board.text(x, y - (index + 0.5) * line_height(LABEL), line, size=LABEL, ha="left", parse_math=False)
