"""The whole architecture on one sheet, any part of it highlighted (F01)."""

import difflib

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.schematic_parts import GAP, HIGH, Tower, config_of, layer_plan, wave
from npformer.plots import Figure
from npformer.plots.board import Board
from npformer.plots.boxes import Box
from npformer.plots.style import drawing
from npformer.transformer import TransformerConfig

WIDE = 2.2  # of a box
APART = 4.0  # from the middle of the encoder to that of the decoder
SIDE = 0.2  # from a box to its residual, and from there to the frame

# What may be highlighted: sorts of parts, then each by itself.
_EACH = [
    f"{stack} {part}"
    for stack, parts in (
        ("encoder", ("self-attention", "feed-forward")),
        ("decoder", ("self-attention", "cross-attention", "feed-forward")),
    )
    for part in parts
]
PARTS = (
    *("encoder", "decoder", "attention", "self-attention", "cross-attention", "feed-forward", "add & norm"),
    *("embedding", "positions", "output"),
    *_EACH,
    *(f"{name} norm" for name in _EACH),
)


@figure("F01", "The architecture of the Transformer", source="S0", data="SC")
def architecture(studio, *, highlight: str | None = None, preset: str = "paper-base", **settings) -> Drawing:
    """The paper's figure 1, laid out from a preset's configuration and changes of its settings.

    highlight is one of PARTS: "decoder", "positions", "add & norm", or one box, "encoder feed-forward norm".
    Errors: UserError for another part, or settings that cannot be.
    """
    if highlight is not None and highlight not in PARTS:
        near = difflib.get_close_matches(highlight, PARTS, n=1, cutoff=0)[0]
        raise UserError(f"there is no part {highlight!r} to highlight: did you mean {near!r}?")
    config = config_of(preset, settings)
    if highlight == "positions" and not config.adds_positions:
        raise UserError(f"with positions={config.positions!r} there are no positions to highlight")
    with drawing():
        return Drawing(_Sheet(config, highlight).draw(), _caption(config, highlight))


def _caption(config: TransformerConfig, highlight: str | None) -> str:
    where = "sums are normalized" if config.norm == "post" else "a norm stands before the sublayer"
    layers = "layer" if config.n_layers == 1 else "layers"
    marked = f"Highlighted: {highlight}. " if highlight else ""
    return (
        f"{marked}{config.n_layers} encoder {layers} (left) read the source, {config.n_layers} decoder "
        f"{layers} (right) read the translation so far, shifted right, and look at the encoder's last "
        f"output. Round every sublayer goes a residual; {where}."
    )


class _Sheet:
    """Draws figure 1, and fades what is not highlighted."""

    def __init__(self, config: TransformerConfig, highlight: str | None):
        self.config, self.highlight, self.board = config, highlight, Board()

    def draw(self) -> Figure:
        """Both stacks from below upwards, then what joins them."""
        _, _, exit = self._stack("encoder", 0)
        decoder, cross, top = self._stack("decoder", APART)
        self._memory(exit, cross)
        self._output(decoder, top)
        return self.board.cut()

    def _stack(self, stack: str, x: float) -> tuple[Tower, tuple[Box, float] | None, tuple[float, float]]:
        """Embedding, positions and one layer in a frame.

        Returns the tower, the cross-attention's box and turn, and the x and y of what leaves at the top.
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
        if self.highlight == stack:
            board.mark(edges[0], bottom - 0.02, edges[1], top)
        at = (edges[0] - 0.1, "right") if left else (edges[1] + 0.1, "left")
        board.text(at[0], (bottom + top) / 2 + 0.15, f"{self.config.n_layers} ×", size=14, ha=at[1])
        plural = "" if self.config.n_layers == 1 else "s"
        board.text(at[0], (bottom + top) / 2 - 0.05, f"{stack}\nlayer{plural}", ha=at[1], va="top")
        if self.config.final_norm:
            tower.box("final norm", "norm", "norm", 0.16 + GAP)
        return tower, cross, (x, tower.y)

    def _entry(self, tower: Tower, stack: str) -> None:
        """From the words to the frame: embedding, and the sum with the positions."""
        board, x, config = self.board, tower.middle, self.config
        name, size = ("inputs", config.source_vocab)
        if stack == "decoder":
            name, size = ("outputs\n(shifted right)", config.target_vocab)
        board.text(x, -0.08, name, size=11, va="top")
        label = f"{'input' if stack == 'encoder' else 'output'} embedding\n{size} words × {config.d_model}"
        tower.box("embedding", label, "x", 0.24)
        if config.adds_positions:
            plus = board.sign(x, tower.y + GAP + 0.2)
            board.arrow((x, tower.y), plus.bottom)
            tower.y = plus.top[1]
            self._positions(plus, -1 if stack == "encoder" else 1)
        board.arrow((x, tower.y), (x, tower.y + 0.22), head=False)
        tower.y += 0.22

    def _positions(self, plus: Box, way: int) -> None:
        """The position signal beside the sum, at the outer side."""
        board, x, y = self.board, plus.x + way * 0.62, plus.y
        near, far = ("right", "left") if way < 0 else ("left", "right")  # the sides that face each other
        if self.config.positions == "learned":
            made = self._painter("")(
                "positions", "learned\npositions", x + way * 0.2, y, 0.9, HIGH, colour="position"
            )
        else:
            made = wave(board, x, y)
            board.text(x + way * 0.26, y, "positional\nencoding", ha=near, va="center")
            if self.highlight == "positions":
                ends = (plus.x - way * 0.22, x + way * 1.06)
                board.mark(min(ends), y - 0.26, max(ends), y + 0.26)
        board.arrow(getattr(made, near), getattr(plus, far))

    def _memory(self, exit, cross) -> None:
        """From the encoder's top to keys and values of the decoder's second attention."""
        (x, y), (box, turn) = exit, cross
        between = APART - WIDE / 2 - 0.42
        first, second = box.on_bottom(0.2), box.on_bottom(0.5)
        points = ((x, y), (x, y + 0.4), (between, y + 0.4), (between, turn))
        self.board.arrow(*points, (first[0], turn), first)
        self.board.arrow((first[0], turn), (second[0], turn), second)
        self.board.text(between - 0.08, (y + 0.4 + turn) / 2, "keys,\nvalues", ha="right", va="center")

    def _output(self, tower: Tower, top) -> None:
        """Linear and softmax over the decoder."""
        config = self.config
        tower.box("output linear", f"linear\n{config.d_model} → {config.target_vocab}", "linear", 0.36)
        tower.box("output softmax", "softmax", "softmax", GAP)
        x, y = tower.middle, tower.y
        self.board.arrow((x, y), (x, y + 0.24))
        self.board.text(x, y + 0.28, "output probabilities", size=11, va="bottom")

    def _painter(self, stack: str):
        """What draws the boxes of one stack: plain, highlighted or faded."""

        def paint(name, label, x, y, width, height, *, colour) -> Box:
            chosen = self.highlight in _tags(stack, name)
            look = {"faded": self.highlight is not None and not chosen}
            look["highlight"] = chosen and self.highlight != stack
            return self.board.box(label, x, y, width, height, colour=colour, **look)

        return paint


def _tags(stack: str, name: str) -> set[str]:
    """All parts that a box is one of."""
    if name == "embedding" or name == "positions":
        return {name}
    if name.startswith("output"):
        return {"output"}
    tags = {stack, f"{stack} {name}"}
    if name.endswith("norm"):
        return tags | {"add & norm"}
    return tags | {name} | ({"attention"} if name.endswith("attention") else set())
