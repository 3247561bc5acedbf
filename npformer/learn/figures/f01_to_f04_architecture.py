"""F01 to F04: the architecture with any part highlighted, a black box, the stacks, one layer of each."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from npformer.errors import UserError, did_you_mean
from npformer.learn.figures.architecture_parts import GAP, HIGH, Tower, config_of, layer_plan, wave
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.transformer import TransformerConfig
from npformer.plots import Figure
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import Box, Point
from npformer.plots.style import FORMULA, TEXT, drawing, visible

WIDE = 2.2  # of a box
APART = 4.0  # from the middle of the encoder to that of the decoder
NUMBER = (0.36, 0.165)  # the box of a part's number
SIDE = 0.2  # from a box to its residual connection, and from there to the frame

# The parts that may be highlighted: groups of parts, then single parts.
_EACH = [
    f"{stack} {part}"
    for stack, parts in (
        ("encoder", ("self-attention", "feed-forward")),
        ("decoder", ("self-attention", "cross-attention", "feed-forward")),
    )
    for part in parts
]
PARTS = (
    "encoder",
    "decoder",
    "attention",
    "self-attention",
    "cross-attention",
    "feed-forward",
    "add & norm",
    "embedding",
    "positions",
    "output",
    *_EACH,
    *(f"{name} norm" for name in _EACH),
)


@figure("F01", "The architecture of the Transformer", "jianshu", "SC", "0.1 10.1 11.4", config_of)
def architecture(config: TransformerConfig, *, highlight: str | None = None) -> Drawing:
    """Draw the paper's figure 1 from an architecture with changed settings.

    Args:
        highlight: One of PARTS: "decoder", "positions", "add & norm", or one box, such as
            "encoder feed-forward norm".

    Raises:
        UserError: If the part or a name is unknown, or a setting is impossible.
    """
    if highlight is not None and highlight not in PARTS:
        raise UserError(f"there is no part {highlight!r} to highlight: {did_you_mean(highlight, PARTS)}")
    if highlight == "positions" and not config.adds_positions:
        raise UserError(f"with positions={config.positions!r} there are no positions to highlight")
    with drawing():
        sheet = _Sheet(config, () if highlight is None else (highlight,))
        where = "its sum is normalized" if config.norm == "post" else "a norm precedes the sublayer"
        marked = f"Highlighted: {highlight}. " if highlight else ""
        encoders, decoders = (_several(config.n_layers, f"{stack} layer") for stack in ("encoder", "decoder"))
        verbs = ("reads", "attends") if config.n_layers == 1 else ("read", "attend")
        return Drawing(
            sheet.draw(),
            f"{marked}{encoders} (left) {verbs[0]} the source. {decoders} (right) {verbs[0]} the "
            f"translation so far, shifted right, and {verbs[1]} to the encoder's output. Every sublayer "
            f"has a residual connection; {where}.",
        )


def architecture_with_numbers(numbers: Mapping[str, str], *, highlight: Sequence[str] = ()) -> Figure:
    """Draw the paper's figure 1 with a number beside each part, such as that of the lesson about it.

    Args:
        numbers: The numbers of parts. The names are "inputs" and those in PARTS.
        highlight: The parts that are highlighted, from PARTS.
    """
    with drawing():
        return _Sheet(config_of(), highlight, numbers).draw()


class _Sheet:
    """The drawing of figure 1, with all but the highlighted parts faded."""

    def __init__(
        self, config: TransformerConfig, highlight: Sequence[str], numbers: Mapping[str, str] | None = None
    ) -> None:
        self.config, self.highlight, self.board = config, frozenset(highlight), Board()
        self.numbers = numbers or {}

    def draw(self) -> Figure:
        """Draw both stacks from the bottom up, then the connections between them."""
        _, _, exit = self._stack("encoder", 0)
        decoder, cross, _ = self._stack("decoder", APART)
        assert cross is not None  # a decoder layer has cross-attention
        self._memory(exit, cross)
        self._output(decoder)
        return self.board.cut()

    def _stack(self, stack: str, x: float) -> tuple[Tower, tuple[Box, float] | None, tuple[float, float]]:
        """Draw the embedding, the positions and one layer in a frame.

        Returns:
            The tower; the cross-attention's box and its turn; x and y of the output at the top.
        """
        board, left = self.board, stack == "encoder"
        out = x + (-1 if left else 1) * (WIDE / 2 + SIDE)  # where the residuals pass
        tower = Tower(board, [x], 0, width=WIDE, side=out, spread=True, paint=self._painter(stack))
        self._entry(tower, stack)
        bottom, cross = tower.y, None
        for part in layer_plan(self.config, stack, paper=True, sizes=True):
            drawn = tower.add(part)
            cross = (drawn.boxes[0], drawn.turn) if part.name == "cross-attention" else cross
        top = tower.y + 0.16
        edges = (out - SIDE, x + WIDE / 2 + 0.12) if left else (x - WIDE / 2 - 0.12, out + SIDE)
        board.frame(edges[0], bottom - 0.02, edges[1], top, colour=stack)
        if stack in self.highlight:
            board.mark(edges[0], bottom - 0.02, edges[1], top)
        at = (edges[0] - 0.1, "right") if left else (edges[1] + 0.1, "left")
        board.text(at[0], (bottom + top) / 2 + 0.15, f"{self.config.n_layers} ×", size=14, ha=at[1])
        plural = "" if self.config.n_layers == 1 else "s"
        board.text(at[0], (bottom + top) / 2 - 0.05, f"{stack}\nlayer{plural}", ha=at[1], va="top")
        self._number({stack}, at[0] + (-0.5 if left else 0.5) * NUMBER[0], (bottom + top) / 2 - 0.55)
        if self.config.final_norm:
            tower.box("final norm", "norm", "norm", 0.16 + GAP)
        return tower, cross, (x, tower.y)

    def _entry(self, tower: Tower, stack: str) -> None:
        """Draw the way from the input to the frame: the embedding, and the sum with the positions."""
        board, x, config = self.board, tower.middle, self.config
        name, size = ("inputs", config.source_vocab)
        if stack == "decoder":
            name, size = ("outputs\n(shifted right)", config.target_vocab)
        board.text(x, -0.08, name, size=11, va="top")
        if stack == "encoder":
            self._number({name}, x + 0.52, -0.16)
        label = f"{'input' if stack == 'encoder' else 'output'} embedding\n{size} tokens × {config.d_model}"
        tower.box("embedding", label, "x", 0.24)
        if config.adds_positions:
            plus = board.sign(x, tower.y + GAP + 0.2)
            board.arrow((x, tower.y), plus.bottom)
            tower.y = plus.top[1]
            self._positions(plus, -1 if stack == "encoder" else 1)
        board.arrow((x, tower.y), (x, tower.y + 0.22), head=False)
        tower.y += 0.22

    def _positions(self, plus: Box, way: int) -> None:
        """Draw the position encoding beside the sum, at the outer side."""
        board, x, y = self.board, plus.x + way * 0.62, plus.y
        near, far = ("right", "left") if way < 0 else ("left", "right")  # the sides that face each other
        if self.config.positions == "learned":
            symbol = self._painter("")(
                "positions", "learned\npositions", x + way * 0.2, y, 0.9, HIGH, colour="position"
            )
        else:
            symbol = wave(board, x, y)
            board.text(x + way * 0.26, y, "positional\nencoding", ha=near, va="center")
            self._number({"positions"}, x + way * 1.3, y)
            if "positions" in self.highlight:
                ends = (plus.x - way * 0.22, x + way * 1.06)
                board.mark(min(ends), y - 0.26, max(ends), y + 0.26)
        board.arrow(getattr(symbol, near), getattr(plus, far))

    def _memory(self, exit: Point, cross: tuple[Box, float]) -> None:
        """Draw the way from the encoder's top to keys and values of the decoder's second attention."""
        (x, y), (box, turn) = exit, cross
        between = APART - WIDE / 2 - 0.42
        first, second = box.on_bottom(0.2), box.on_bottom(0.5)
        points = ((x, y), (x, y + 0.4), (between, y + 0.4), (between, turn))
        self.board.arrow(*points, (first[0], turn), first)
        self.board.arrow((first[0], turn), (second[0], turn), second)
        self.board.text(between - 0.08, (y + 0.4 + turn) / 2, "keys,\nvalues", ha="right", va="center")

    def _output(self, tower: Tower) -> None:
        """Draw linear and softmax above the decoder."""
        config = self.config
        tower.box("output linear", f"linear\n{config.d_model} → {config.target_vocab}", "linear", 0.36)
        tower.box("output softmax", "softmax", "softmax", GAP)
        x, y = tower.middle, tower.y
        self.board.arrow((x, y), (x, y + 0.24))
        self.board.text(x, y + 0.28, "output probabilities", size=11, va="bottom")

    def _painter(self, stack: str) -> Callable[..., Box]:
        """Return the function that draws the boxes of one stack: plain, highlighted or faded."""

        def paint(
            name: str, label: str, x: float, y: float, width: float, height: float, *, colour: str
        ) -> Box:
            tags = _tags(stack, name)
            chosen = not tags.isdisjoint(self.highlight)
            style = {"faded": bool(self.highlight) and not chosen}
            style["highlight"] = not (tags - {stack}).isdisjoint(self.highlight)
            box = self.board.box(label, x, y, width, height, colour=colour, **style)
            inner = 1 if stack == "encoder" else -1  # the side without residual connections
            self._number(tags - {stack}, x + inner * (width - NUMBER[0]) / 2, box.top[1] + 0.09)
            return box

        return paint

    def _number(self, names: set[str], x: float, y: float) -> None:
        """Draw the number of a part in a small dark box at a place, if the part has a number."""
        for name in names & set(self.numbers):
            self.board.box(self.numbers[name], x, y, *NUMBER, colour="ink", size=TEXT)


def _tags(stack: str, name: str) -> set[str]:
    """Return the names of all parts to which a box belongs."""
    if name == "embedding" or name == "positions":
        return {name}
    if name.startswith("output"):
        return {"output"}
    tags = {stack, f"{stack} {name}"}
    if name.endswith("norm"):
        return tags | {"add & norm"}
    return tags | {name} | ({"attention"} if name.endswith("attention") else set())


# Overviews: a black box, the stacks, and one layer of each stack.

SENTENCE, TRANSLATION = "Je suis étudiant", "I am a student"
STEP = 0.66  # from one layer of a stack to the next
LAYER_STEP = 0.85  # from one sublayer to the next


@figure("F02", "The Transformer as a black box, opened", "jianshu", "SC", "0.1", config_of)
def black_box(
    config: TransformerConfig, *, sentence: str = SENTENCE, translation: str = TRANSLATION
) -> Drawing:
    """Draw the Transformer as a box between a sentence and its translation, and below it the opened box.

    Args:
        config: The configuration.
        sentence, translation: The texts at the left and at the right.
    """
    sentence, translation = _shown(sentence, "sentence"), _shown(translation, "translation")
    with new_board(sentence, translation) as board:
        apart = 2.5  # from the middle of the encoders to that of the decoders
        box = board.box("the Transformer", apart / 2, 2.0, 2.2, 0.8, colour="ink", size=FORMULA)
        encoders, decoders = (
            board.box(_several(config.n_layers, name), x, 0, 1.5, 0.8, colour=name, size=FORMULA)
            for name, x in (("encoder", 0), ("decoder", apart))
        )
        left, right, top = encoders.left[0] - 0.25, decoders.right[0] + 0.25, 0.75
        board.frame(left, -0.65, right, top)
        for x, corner in ((box.left[0], left), (box.right[0], right)):
            board.arrow((x, box.bottom[1]), (corner, top), dashed=True, head=False, colour="faint")
        board.arrow(encoders.right, decoders.left)
        for first, last in ((box, box), (encoders, decoders)):
            ends = (left - 0.5, right + 0.5)
            board.arrow((ends[0], first.y), first.left)
            board.arrow(last.right, (ends[1], last.y))
            board.text(ends[0] - 0.08, first.y, sentence, size=FORMULA, ha="right", parse_math=False)
            board.text(ends[1] + 0.08, last.y, translation, size=FORMULA, ha="left", parse_math=False)
    return Drawing(
        board.figure,
        f"From outside, the Transformer turns “{sentence}” into “{translation}”. Inside, the whole source is "
        f"read by {_several(config.n_layers, 'encoder')}, and the translation is written by "
        f"{_several(config.n_layers, 'decoder')} from the encoders' output.",
    )


def _shown(text: str, name: str) -> str:
    """Return a sentence as it can be drawn, or raise a UserError if it is empty."""
    if not text.strip():
        raise UserError(f"the {name} is empty: write at least one word")
    return visible(text)


def _several(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count > 1)


@figure(
    "F03", "The stacks: the top encoder is read by every decoder", "jianshu", "SC", "10.3 11.5", config_of
)
def stacks(config: TransformerConfig, *, sentence: str = SENTENCE, translation: str = TRANSLATION) -> Drawing:
    """Draw the encoders above each other at the left, the decoders at the right, and the arrows between.

    Args:
        config: The configuration.
        sentence, translation: The texts below the encoders and above the decoders.
    """
    sentence, translation = _shown(sentence, "sentence"), _shown(translation, "translation")
    n, apart = config.n_layers, 3.2
    with new_board(sentence, translation) as board:
        encoders, decoders = (
            [board.box(f"{name} #{i}", x, i * STEP, 1.5, HIGH, colour=name) for i in range(n)]
            for name, x in (("encoder", 0), ("decoder", apart))
        )
        for stack in (encoders, decoders):
            for below, above in pairwise(stack):
                board.arrow(below.top, above.bottom)
        _fan(board, encoders[-1], decoders)
        board.arrow((0, -STEP), encoders[0].bottom)
        board.arrow((apart, -STEP), decoders[0].bottom)
        board.text(0, -STEP - 0.05, sentence, size=FORMULA, va="top", parse_math=False)
        board.text(apart, -STEP - 0.05, "the translation so far", size=FORMULA, va="top")
        top = decoders[-1].top
        board.arrow(top, (apart, top[1] + 0.4))
        board.text(apart, top[1] + 0.46, translation, size=FORMULA, va="bottom", parse_math=False)
    goes = f"all {n} decoders: each attends to the same encoded source" if n > 1 else "the only decoder"
    return Drawing(
        board.figure,
        f"Only the output of the top encoder, #{n - 1}, leaves the stack, and it goes to {goes}.",
    )


def _fan(board: Board, top: Box, decoders: list[Box]) -> None:
    """Draw lines from the top encoder to a line between the stacks, and from there into every decoder."""
    x, y = top.top
    between = (top.right[0] + decoders[0].left[0]) / 2
    board.arrow((x, y), (x, y + 0.3), (between, y + 0.3), (between, decoders[0].y), decoders[0].left)
    for decoder in decoders[1:]:
        board.arrow((between, decoder.y), decoder.left)


@figure("F04", "One encoder layer beside one decoder layer", "jianshu", "SC", "10.1 11.4", config_of)
def layers(config: TransformerConfig) -> Drawing:
    """Draw the sublayers of an encoder layer and a decoder layer, without norms and residual connections."""
    with new_board() as board:
        encoder = _simple_layer(board, config, "encoder", 0)
        decoder = _simple_layer(board, config, "decoder", 4.3)
        x, y = encoder[-1].top
        cross = decoder[1]
        between = cross.left[0] - 0.75
        board.arrow((x, y + 0.6), (between, y + 0.6), (between, cross.y), cross.left)
        board.text(between - 0.08, cross.y, "keys,\nvalues", ha="right", va="center")
    return Drawing(
        board.figure,
        "Both layers begin with self-attention and end with a feed-forward network. A decoder layer has one "
        "more sublayer between them, whose queries come from below and whose keys and values come from the "
        "encoder. Norms and residual connections are left out here.",
    )


def _simple_layer(board: Board, config: TransformerConfig, stack: str, x: float) -> list[Box]:
    """Draw the boxes of one layer in a frame as high as the decoder's, with arrows through them."""
    plan = layer_plan(config, stack, sizes=True)
    rise = 2 * LAYER_STEP / (len(plan) - 1)
    boxes = [board.box(part.label, x, i * rise, 2.3, 0.5, colour=part.colour) for i, part in enumerate(plan)]
    top = 2 * LAYER_STEP + 0.25
    board.frame(x - 1.35, -0.45, x + 1.35, top + 0.42, colour=stack, label=f"{stack} layer")
    board.arrow((x, -0.85), boxes[0].bottom)
    for below, above in pairwise(boxes):
        board.arrow(below.top, above.bottom)
    board.arrow(boxes[-1].top, (x, top + 0.85))
    return boxes
