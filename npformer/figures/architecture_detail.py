"""Layers in full detail, a column for each word: F41 and F43."""

from typing import NamedTuple

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.schematic_parts import (
    ROOMY,
    TIGHT,
    Spacing,
    Tower,
    config_of,
    large_box,
    layer_plan,
    wave,
)
from npformer.plots.board import Board
from npformer.plots.boxes import Box
from npformer.plots.style import FORMULA, drawing, printable, widest
from npformer.transformer import TransformerConfig

MACHINES = "Thinking Machines"
COLUMN = 1.4  # from one word to the next, at least
SIDE = 0.22  # from a box to the residual beside it
MARGIN = 0.2  # of a frame
MOST_WORDS = 6


class Stack(NamedTuple):
    """A stack as it was drawn."""

    tower: Tower  # its y is the top
    crosses: list[Box]  # the attention boxes that read the encoder, from below


@figure("F41", "Add & normalize, with residuals round both sublayers", source="S2", data="SC")
def add_and_normalize(studio, *, sentence: str = MACHINES, preset: str = "paper-base", **settings) -> Drawing:
    """One encoder layer: a dashed residual leaves before each sublayer and is added after it."""
    config = config_of(preset, {"n_layers": 1} | settings)
    words = words_of(sentence)
    with drawing(words):
        board = Board()
        stack = draw_stack(board, config, "encoder", words, 0)
        up = stack.tower.y + 0.35
        for x in stack.tower.xs:
            board.arrow((x, stack.tower.y), (x, up))
        picture = board.cut(what=f"a picture of {config.n_layers} layers")
    return Drawing(picture, _residual_caption(config))


def _residual_caption(config: TransformerConfig) -> str:
    if config.norm == "pre":
        return (
            "A norm stands before each sublayer, y = x + f(norm(x)), and the dashed residual goes round "
            "both. What climbs is a sum that no norm touches, until the last one on top of the stack."
        )
    return (
        "The dashed residual carries a sublayer's input round it. Input and output are added and then "
        "normalized, y = norm(x + f(x)), round self-attention and round the feed-forward networks alike."
    )


@figure("F43", "Two encoders and two decoders in full detail", source="S2", data="SC")
def full_detail(
    studio,
    *,
    sentence: str = MACHINES,
    target: str = "<S> machines",
    n_layers: int = 2,
    preset: str = "paper-base",
    **settings,
) -> Drawing:
    """Every sublayer, norm and residual; the top encoder's output goes to each decoder's second attention.

    target is what the decoder reads, the start symbol first.
    """
    config = config_of(preset, {"n_layers": n_layers} | settings)
    source, read = words_of(sentence), words_of(target)
    with drawing(source, read):
        board = Board()
        encoder = draw_stack(board, config, "encoder", source, 0, spacing=TIGHT)
        start = encoder.tower.xs[-1] + encoder.tower.width / 2 + 2.1
        decoder = draw_stack(board, config, "decoder", read, start, spacing=TIGHT)
        _memory(board, encoder, decoder)
        tower = decoder.tower
        tower.box("linear", "linear", "linear", 0.3)
        tower.box("softmax", "softmax", "softmax", TIGHT.gap)
        for x in tower.xs:
            board.arrow((x, tower.y), (x, tower.y + 0.25))
        board.text(tower.middle, tower.y + 0.3, "a probability for every word", va="bottom")
        picture = board.cut(what=f"a picture of {n_layers} encoders and {n_layers} decoders")
    place = "before" if config.norm == "pre" else "after"
    several = f"{n_layers} encoder{'s' * (n_layers > 1)}"
    return Drawing(
        picture,
        f"“{sentence}” climbs through {several}; what the top one makes goes to the encoder-decoder "
        f"attention of every decoder. Each sublayer has its dashed residual and a norm {place} it; linear "
        "and softmax turn the top decoder's vectors into words.",
    )


def words_of(sentence: str) -> list[str]:
    """The words, as they are drawn. Errors: UserError for none, or more than have room."""
    words = [printable(word) for word in sentence.split()]
    if not 1 <= len(words) <= MOST_WORDS:
        raise UserError(
            f"the sentence {sentence!r} has {len(words)} words: give 1 to {MOST_WORDS}, each has a column"
        )
    return words


def draw_stack(
    board: Board, config, stack: str, words: list[str], left: float, spacing: Spacing = ROOMY
) -> Stack:
    """Words, positions, and every layer in a frame, from below upwards; left is the first word's column."""
    column = max(COLUMN, widest(words, FORMULA) + 0.2)
    xs = [left + i * column for i in range(len(words))]
    width = max(xs[-1] - xs[0] + column - 0.12, 2.1)
    middle = (xs[0] + xs[-1]) / 2
    way = -1 if stack == "encoder" else 1  # residuals pass at the outer side
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
    """Each word's vector, and the sum with its position."""
    board = tower.board
    boxes = [large_box(board, f"$x_{{{i + 1}}}$", x, 0.4, 0.8, 0.3, "x") for i, x in enumerate(tower.xs)]
    for x, box in zip(tower.xs, boxes, strict=True):
        board.arrow((x, 0), box.bottom)
    tower.y = boxes[0].top[1]
    if not config.adds_positions:
        return
    for x in tower.xs:
        plus = board.sign(x, tower.y + 0.33)
        board.arrow((x, tower.y), plus.bottom)
        if config.positions == "learned":
            position = large_box(board, "$p$", x - 0.45, plus.y, 0.3, 0.3, "position")
        else:
            position = wave(board, x - 0.45, plus.y, radius=0.14)
        board.arrow(position.right, plus.left)
    tower.y += 0.46


def _memory(board: Board, encoder: Stack, decoder: Stack) -> None:
    """From the top of the encoders to the encoder-decoder attention of every decoder."""
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
