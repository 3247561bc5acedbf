"""F53: a residual block, F(x) + x."""

from collections.abc import Sequence

from npformer.learn.figures.architecture_parts import HIGH, config_of, widths_of
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.transformer import TransformerConfig
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import around
from npformer.plots.style import FORMULA

WIDE = 1.9
BETWEEN = 0.42  # from one box to the next
SIDE = 0.45  # from a box to the residual connection beside it

Part = tuple[str, str]  # a label and a colour; "+" is the sum


@figure("F53", "A residual block: F(x) + x", "zhihu", "SC", "8.3", config_of)
def residual_block(config: TransformerConfig) -> Drawing:
    """Draw the block of residual networks beside a sublayer of the Transformer."""
    f = (f"feed-forward\n{widths_of(config)}", "feed_forward")
    sublayer, inside, y = [f, ("+", ""), ("norm", "norm")], [0], "norm(F(x) + x)"
    if config.norm == "pre":  # the norm is a part of F
        sublayer, inside, y = [("norm", "norm"), f, ("+", "")], [0, 1], "F(x) + x, with the norm inside F"
    weights = ("weights", "linear")
    with new_board() as board:
        _block(board, 0, [weights, ("relu", "plain"), weights, ("+", ""), ("relu", "plain")], range(3))
        _block(board, 4.9, sublayer, inside)
        board.text(0, -0.75, "in a residual network", va="top")
        board.text(4.9, -0.75, f"in this Transformer: {y}", va="top")
    return Drawing(
        board.figure,
        "The layers need to learn only F(x), the change of x. The residual connection passes x itself on "
        "unchanged, and in the backward pass its gradient too. In this Transformer a sublayer with its "
        f"residual connection computes {y}.",
    )


def _block(board: Board, x: float, parts: Sequence[Part], inside: Sequence[int]) -> None:
    """Draw boxes from the bottom up with a residual connection to the sum. The boxes `inside` are F."""
    fork, y = (x, 0.1), 0.36
    board.text(x, -0.3, "$x$", size=FORMULA, va="top")
    below, drawn = (x, -0.25), []
    for label, colour in parts:
        if label == "+":
            box = board.sign(x, y + 0.13)
            board.arrow(*around(fork, box.right, x + WIDE / 2 + SIDE))
            board.text(x + 0.22, box.y + 0.1, "$F(x) + x$", size=FORMULA, ha="left", va="bottom")
        else:
            box = board.box(label, x, y + HIGH / 2, WIDE, HIGH, colour=colour)
        board.arrow(below, box.bottom)
        below, y = box.top, box.top[1] + BETWEEN
        drawn.append(box)
    board.arrow(below, (x, y))
    board.text(x + WIDE / 2 + SIDE + 0.1, 0.9, "$x$\nunchanged", size=FORMULA, ha="left", va="center")
    # F(x) with a bracket beside its boxes
    boxes = [drawn[i] for i in inside]
    left, bottom, top = boxes[0].left[0] - 0.15, boxes[0].bottom[1], boxes[-1].top[1]
    board.bracket(left, bottom, top)
    board.text(left - 0.16, (bottom + top) / 2, "$F(x)$", size=FORMULA, ha="right")
