"""F41 to F43: layers in full detail with a column for each word, and the sum and the norm with numbers."""

from typing import NamedTuple

from npformer.errors import UserError
from npformer.learn.figures.architecture_parts import (
    ROOMY,
    TIGHT,
    Spacing,
    Tower,
    config_of,
    layer_plan,
    wave,
)
from npformer.learn.figures.datawhale_example import MACHINES, Example, make_example
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.transformer import TransformerConfig
from npformer.plots import Grid
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.boxes import Box
from npformer.plots.style import FORMULA, visible, widest

COLUMN = 1.4  # from one word to the next, at least
SIDE = 0.22  # from a box to the residual connection beside it
MARGIN = 0.2  # of a frame
MOST_WORDS = 6


class Stack(NamedTuple):
    """A stack as it was drawn."""

    tower: Tower  # its y is the top
    crosses: list[Box]  # the attention boxes that read the encoder, from below


@figure(
    "F41",
    "Add & normalize, with residual connections past both sublayers",
    "datawhale",
    "SC",
    "8.1 8.3",
    config_of,
    n_layers=1,
)
def add_and_normalize(config: TransformerConfig, *, sentence: str = MACHINES) -> Drawing:
    """Draw an encoder layer over the words of a sentence, with dashed residual connections."""
    words = words_of(sentence)
    with new_board(words, what=f"a picture of {config.n_layers} layers") as board:
        stack = _draw_stack(board, config, "encoder", words, 0)
        up = stack.tower.y + 0.35
        for x in stack.tower.xs:
            board.arrow((x, stack.tower.y), (x, up))
    return Drawing(board.figure, _residual_caption(config))


def _residual_caption(config: TransformerConfig) -> str:
    if config.norm == "pre":
        return (
            "A norm precedes each sublayer, y = x + f(norm(x)), and the dashed residual connection passes "
            "both. The sum itself is not normalized until the final norm at the top of the stack."
        )
    return (
        "The dashed residual connection carries a sublayer's input past it. Input and output are added and "
        "then normalized, y = norm(x + f(x)), both for self-attention and for the feed-forward networks."
    )


@figure(
    "F43",
    "Two encoders and two decoders in full detail",
    "datawhale",
    "SC",
    "10.3 11.4",
    config_of,
    n_layers=2,
)
def full_detail(
    config: TransformerConfig, *, sentence: str = MACHINES, target: str = "<S> machines"
) -> Drawing:
    """Draw every sublayer, norm and residual connection of encoders and decoders.

    The top encoder's output goes to the second attention of each decoder.

    Args:
        config, sentence: The configuration, and the sentence that the encoder reads.
        target: The decoder's input, the start symbol first.
    """
    source, read, n_layers = words_of(sentence), words_of(target), config.n_layers
    with new_board(source, read, what=f"a picture of {n_layers} encoders and {n_layers} decoders") as board:
        encoder = _draw_stack(board, config, "encoder", source, 0, spacing=TIGHT)
        start = encoder.tower.xs[-1] + encoder.tower.width / 2 + 2.1
        decoder = _draw_stack(board, config, "decoder", read, start, spacing=TIGHT)
        # from the top encoder to the encoder-decoder attention of every decoder
        tower = encoder.tower
        y = tower.y + 0.3
        between = decoder.crosses[0].left[0] - 0.62
        for x in tower.xs:
            board.arrow((x, tower.y), (x, y), head=False)
        lowest, *others = decoder.crosses
        board.arrow((tower.xs[0], y), (between, y), (between, lowest.y), lowest.left)
        highest = max(cross.y for cross in decoder.crosses)
        if highest > y:
            board.arrow((between, y), (between, highest), head=False)
        for cross in others:
            board.arrow((between, cross.y), cross.left)
        board.text(between - 0.08, lowest.y + 0.5, "keys,\nvalues", ha="right", va="center")
        tower = decoder.tower
        tower.box("linear", "linear", "linear", 0.3)
        tower.box("softmax", "softmax", "softmax", TIGHT.gap)
        for x in tower.xs:
            board.arrow((x, tower.y), (x, tower.y + 0.25))
        board.text(tower.middle, tower.y + 0.3, "a probability for every word", va="bottom")
    place = "before" if config.norm == "pre" else "after"
    several = f"{n_layers} encoder{'s' * (n_layers > 1)}"
    return Drawing(
        board.figure,
        f"“{sentence}” passes through {several}. The top encoder's output goes to the encoder-decoder "
        f"attention of every decoder. Each sublayer has a dashed residual connection and a norm {place} it. "
        "Linear and softmax turn the top decoder's vectors into word probabilities.",
    )


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence as they are drawn.

    Raises:
        UserError: If there are none, or more than there is room for.
    """
    words = [visible(word) for word in sentence.split()]
    if not 1 <= len(words) <= MOST_WORDS:
        raise UserError(
            f"the sentence {sentence!r} has {len(words)} words: give 1 to {MOST_WORDS}, each has a column"
        )
    return words


def _draw_stack(
    board: Board,
    config: TransformerConfig,
    stack: str,
    words: list[str],
    left: float,
    spacing: Spacing = ROOMY,
) -> Stack:
    """Draw words, positions, and every layer in a frame, from the bottom up; `left` is the first column."""
    column = max(COLUMN, widest(words, FORMULA) + 0.2)
    xs = [left + i * column for i in range(len(words))]
    width = max(xs[-1] - xs[0] + column - 0.12, 2.1)
    middle = (xs[0] + xs[-1]) / 2
    way = -1 if stack == "encoder" else 1  # residual connections pass at the outer side
    tower = Tower(
        board,
        xs,
        0,
        width=width,
        side=middle + way * (width / 2 + SIDE),
        dashed=True,
        spacing=spacing,
        joined="add & normalize",
    )
    for x, word in zip(xs, words, strict=True):
        board.text(x, -0.06, word, size=FORMULA, va="top", parse_math=False)
    _positions(tower, config)
    crosses = []
    edges = sorted((tower.side + way * MARGIN, middle - way * (width / 2 + MARGIN)))
    for index in range(config.n_layers):
        tower.rise(0.24)
        bottom = tower.y - 0.06
        for part in layer_plan(config, stack):
            drawn = tower.add(part)
            if part.name == "cross-attention":
                crosses.append(drawn.boxes[0])
        top = tower.y + 0.3
        board.frame(edges[0], bottom, edges[1], top, colour=stack)
        corner = (edges[0] + 0.1, "left") if way < 0 else (edges[1] - 0.1, "right")
        board.text(corner[0], top - 0.15, f"{stack} #{index}", ha=corner[1], weight="bold")
        tower.rise(0.3)
    if config.final_norm:
        tower.box("final norm", "norm", "norm", tower.spacing.gap)
    return Stack(tower, crosses)


def _positions(tower: Tower, config: TransformerConfig) -> None:
    """Draw each word's vector, and the sum with its position vector."""
    board = tower.board
    boxes = [
        board.box(f"$x_{{{i + 1}}}$", x, 0.4, 0.8, 0.3, colour="x", size=FORMULA)
        for i, x in enumerate(tower.xs)
    ]
    for x, box in zip(tower.xs, boxes, strict=True):
        board.arrow((x, 0), box.bottom)
    tower.y = boxes[0].top[1]
    if not config.adds_positions:
        return
    for x in tower.xs:
        plus = board.sign(x, tower.y + 0.33)
        board.arrow((x, tower.y), plus.bottom)
        if config.positions == "learned":
            position = board.box("$p$", x - 0.45, plus.y, 0.3, 0.3, colour="position", size=FORMULA)
        else:
            position = wave(board, x - 0.45, plus.y, radius=0.14)
        board.arrow(position.right, plus.left)
    tower.y += 0.46


BOX = 0.46  # of a box, in inches


@figure("F42", "LayerNorm(X + Z)", "datawhale", "FW", "8.1 8.3", make_example)
def add_and_norm(example: Example) -> Drawing:
    """Draw the residual connection of self-attention: X and Z, their sum, and its rows after the norm."""
    x, z, y = example.x, example.z, example.normalised
    with new_board(example.words, matrices=[x, z, y]) as board:
        wide, high = board.size(Grid(x))
        sums: list[Grid | str] = [numbered(x, "$X$", "x"), "+", numbered(z, "$Z$", "z")]
        result = numbered(y, "", "normalised", rows=example.words)
        up = high + 1.25  # from X to the sum
        first, second = board.product(sums, 0, up)
        inputs = board.grid_at(numbered(x, "$X$", "x", rows=example.words), first.centre[0], 0, label="below")
        box = board.box("self-attention", second.centre[0], 0, max(wide, 1.3), BOX, colour="attention")
        out = board.grid_at(result, (first.left + second.right) / 2, up + high + 1.25)
        # the box add & norm around LayerNorm(X + Z)
        level = first.centre[1]
        board.text(first.left - 0.12, level, "(", size=22, ha="right")
        board.text(first.left - 0.28, level, "LayerNorm", size=13, ha="right")
        board.text(second.right + 0.1, level, ")", size=22, ha="left")
        left, right = first.left - 1.4, second.right + 0.35
        board.frame(left, first.bottom - 0.25, right, first.top + 0.62, colour="norm")
        board.text(left + 0.1, first.top + 0.46, "add & norm", ha="left", weight="bold")
        board.arrow((inputs.right, 0), box.left)
        board.arrow((inputs.centre[0], inputs.top), (first.centre[0], first.bottom), dashed=True)
        board.text(inputs.centre[0] + 0.1, inputs.top + 0.2, "residual", ha="left")
        board.arrow(box.top, (second.centre[0], second.bottom))
        board.arrow((out.centre[0], first.top + 0.62), (out.centre[0], out.bottom))
        board.arrow((out.centre[0], out.top), (out.centre[0], out.top + 0.42))
        board.text(out.centre[0], out.top + 0.5, "to the feed-forward network", va="bottom")
    before, output, total, after = map(board.write, (x[0, 0], z[0, 0], x[0, 0] + z[0, 0], y[0, 0]))
    caption = (
        f"The residual connection adds X to the output of self-attention: {before} + ({output}) = {total} in "
        "the first cell. The norm then gives every row, that is every word, mean 0 and variance 1: "
        f"{total} becomes {after}."
    )
    return Drawing(board.figure, caption)
