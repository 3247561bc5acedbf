"""Parts shared by the schematics of the architecture: the plan of a layer, and its drawing.

The pictures follow the configuration: with norm="pre" the norm stands before the sublayer, and so on.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from npformer.models.transformer import TransformerConfig
from npformer.plots.board import Board
from npformer.plots.boxes import Box, around
from npformer.plots.palette import COLOURS

SPREAD = 0.16  # additional height where the arrow into attention splits into three


class Spacing(NamedTuple):
    """The heights of a tower, in inches."""

    high: float = 0.44  # of a box; two lines fit
    gap: float = 0.2  # below a box that belongs to the one below it
    fork: float = 0.3  # below a box where a residual connection leaves, in the middle of this space


ROOMY = Spacing()
HIGH, GAP, FORK = ROOMY
TIGHT = Spacing(0.28, 0.13, 0.21)  # for many boxes of one line


class Sublayer(NamedTuple):
    """A sublayer as the configuration describes it."""

    name: str  # "self-attention", "cross-attention" or "feed-forward"
    label: str
    colour: str  # a role of the palette
    pre: bool  # whether the norm stands before the sublayer


class Drawn(NamedTuple):
    """A sublayer as it was drawn."""

    boxes: list[Box]  # the sublayer: one box, or one for each word
    norm: Box  # the norm before it, or the box "add & norm" after it
    join: Box  # the end of the residual connection: the sign or box that adds, or the box "add & norm"
    turn: float  # the height, below the boxes, at which keys and values from another stack enter


def config_of(architecture: str = "paper-base", **settings: Any) -> TransformerConfig:
    """Return the configuration of an architecture with some settings changed. norm="pre" adds the final norm.

    The schematics draw the configuration, so all of these are settings of their figures.

    Raises:
        UserError: If a name is unknown or a setting is impossible.
    """
    if settings.get("norm") == "pre":
        settings = {"final_norm": True} | settings
    return TransformerConfig.architecture(architecture, **settings)


def heads_of(config: TransformerConfig) -> str:
    """Return the number and the width of the heads, such as "8 heads of 64"."""
    return f"{config.n_heads} head{'s' * (config.n_heads > 1)} of {config.head_key}"


def layer_plan(
    config: TransformerConfig, stack: str, *, paper: bool = False, sizes: bool = False
) -> list[Sublayer]:
    """Return the sublayers of an "encoder" or "decoder" layer from the bottom up.

    Args:
        config, stack: The configuration, and "encoder" or "decoder".
        paper: Whether to use the paper's terms, such as "masked multi-head attention".
        sizes: Whether to write the configuration's numbers below the names.
    """
    several = "multi-head " if config.n_heads > 1 else ""
    masked = "masked " if stack == "decoder" else ""
    rows = [
        ("self-attention", f"{masked}{several}attention", heads_of(config), "attention"),
        ("cross-attention", f"{several}attention", heads_of(config), "attention"),
        ("feed-forward", "feed-forward", widths_of(config), "feed_forward"),
    ]
    plain = {"cross-attention": "encoder-decoder attention"}
    plan = []
    for name, label, numbers, colour in rows:
        if stack == "decoder" or name != "cross-attention":
            text = (label if paper else plain.get(name, name)) + (f"\n{numbers}" if sizes else "")
            plan.append(Sublayer(name, text, colour, config.norm == "pre"))
    return plan


def widths_of(config: TransformerConfig) -> str:
    """Return the widths in the feed-forward network, such as "512 → 2048 → 512"."""
    return f"{config.d_model} → {config.d_ff} → {config.d_model}"


class Tower:
    """Draws sublayers above each other, with norms, residual connections and the arrows between them.

    Args:
        board: The board to draw on.
        xs: The centres of the columns: one for a whole layer, or one for each word, which gives every word a
            feed-forward box of its own.
        y: The upper edge of the part that has been drawn.
        width: The width of a box over all columns.
        side, dashed: The x at which residual connections pass, and whether they are dashed.
        spread: Whether the arrow into attention splits into three, for queries, keys and values.
        spacing, joined: The heights of the boxes and spaces, and the label of the norm after a sum.
        paint: paint(name, label, x, y, width, height, colour=...) draws a box; names are such as
            "self-attention norm". By default a plain box is drawn.
    """

    def __init__(
        self,
        board: Board,
        xs: Sequence[float],
        y: float,
        *,
        width: float,
        side: float,
        dashed: bool = False,
        spread: bool = False,
        spacing: Spacing = ROOMY,
        joined: str = "add & norm",
        paint: Callable[..., Box] | None = None,
    ) -> None:
        self.board, self.xs, self.y, self.width, self.side = board, list(xs), y, width, side
        self.dashed, self.spread, self.spacing, self.joined = dashed, spread, spacing, joined
        self.paint = paint or (lambda name, *place, **style: board.box(*place, **style))
        self.middle = (self.xs[0] + self.xs[-1]) / 2

    def add(self, part: Sublayer) -> Drawn:
        """Draw one more sublayer on top."""
        fork, gap = self.spacing.fork, self.spacing.gap
        leaves = (self.xs[0] if self.side < self.middle else self.xs[-1], self.y + fork / 2)
        norm = self.box(f"{part.name} norm", "norm", "norm", fork) if part.pre else None
        boxes, turn = self._main(part, gap if part.pre else fork)
        if norm is None:
            join = norm = self.box(f"{part.name} norm", self.joined, "norm", gap)
        else:
            join = self._sum(f"{part.name} norm")
        end = join.left if self.side < self.middle else join.right
        self.board.arrow(*around(leaves, end, self.side), dashed=self.dashed)
        return Drawn(boxes, norm, join, turn)

    def rise(self, height: float) -> None:
        """Draw lines straight up, without arrow heads, from where the next arrows start."""
        for x in self.xs:
            self.board.arrow((x, self.y), (x, self.y + height), head=False)
        self.y += height

    def box(self, name: str, label: str, colour: str, gap: float, *, high: float | None = None) -> Box:
        """Draw a box over all columns with an arrow into it from each column, and return it.

        Args:
            name, label, colour: The name of the part, the text in the box, and a role of the palette.
            gap, high: The distance from the part below, and the height of the box, by default that of the
                tower's boxes, in inches.
        """
        high = high or self.spacing.high
        place = (self.middle, self.y + gap + high / 2, self.width, high)
        box = self.paint(name, label, *place, colour=colour)
        for x in self.xs:
            self.board.arrow((x, self.y), (x, box.bottom[1]))
        self.y = box.top[1]
        return box

    def _main(self, part: Sublayer, gap: float) -> tuple[list[Box], float]:
        """Draw the boxes of the sublayer itself; return them and the height of the turn below them."""
        if part.name == "feed-forward" and len(self.xs) > 1:
            return self._for_each_word(part, gap), self.y
        if not self.spread or part.name == "feed-forward":
            box = self.box(part.name, part.label, part.colour, gap)
            return [box], box.bottom[1]
        start, high = self.y, self.spacing.high
        place = (self.middle, start + gap + SPREAD + high / 2, self.width, high)
        box = self.paint(part.name, part.label, *place, colour=part.colour)
        self.y = box.top[1]
        low, turn = box.bottom[1] - 0.24, box.bottom[1] - 0.14
        if part.name == "cross-attention":  # the query alone, at the right; the encoder gives keys and values
            to = box.on_bottom(0.8)
            self.board.arrow((self.middle, start), (self.middle, low), (to[0], low), to)
            return [box], turn
        self.board.arrow((self.middle, start), box.bottom)
        for share in (0.2, 0.8):
            to = box.on_bottom(share)
            self.board.arrow((self.middle, turn), (to[0], turn), to)
        return [box], turn

    def _for_each_word(self, part: Sublayer, gap: float) -> list[Box]:
        """Draw the same feed-forward network above each word."""
        high, start = self.spacing.high, self.y
        width = min(b - a for a, b in pairwise(self.xs)) - 0.12
        y = start + gap + high / 2
        boxes = [self.paint(part.name, part.label, x, y, width, high, colour=part.colour) for x in self.xs]
        for x, box in zip(self.xs, boxes, strict=True):
            self.board.arrow((x, start), box.bottom)
        self.y = boxes[0].top[1]
        return boxes

    def _sum(self, name: str) -> Box:
        """Draw the sum of a sublayer's output and its residual: a sign, or a box over all words."""
        if len(self.xs) > 1:
            return self.box(name, "add", "plain", self.spacing.gap, high=0.26)
        plus = self.board.sign(self.middle, self.y + self.spacing.gap + 0.13)
        self.board.arrow((self.middle, self.y), plus.bottom)
        self.y = plus.top[1]
        return plus


def wave(board: Board, x: float, y: float, *, radius: float = 0.17) -> Box:
    """Draw a circle with one period of a sine, the symbol of the position encoding.

    Args:
        board: The board to draw on.
        x, y, radius: The centre and the radius, in inches.

    Returns:
        The circle, as a box for arrows.
    """
    circle = board.sign(x, y, "", radius=radius, colour="position")
    t = np.linspace(-1, 1, 41)
    style: dict[str, Any] = {"color": COLOURS["ink"], "linewidth": 1.4, "zorder": 4}
    board.ax.plot(x + 0.65 * radius * t, y + 0.47 * radius * np.sin(np.pi * t), **style)
    return circle
