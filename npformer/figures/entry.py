"""Entry: one figure of the documents, and the register of them all."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from npformer.plots import Figure

SOURCES = {
    "S0": "一步步解析Attention is All You Need!",
    "S2": "图解transformer",
    "S3": "Attention机制详解（二）",
    "S4": "The components of the Transformer",
}
DATA = {
    "FO": "a formula",
    "FW": "tensors of a forward pass",
    "TR": "a model trained here",
    "SC": "a schematic, laid out from a configuration",
}


@dataclass
class Drawing:
    """A figure with its caption, and the frames of its animation where it has one.

    frames are functions that draw one frame each, for npformer.plots.animated_gif.
    """

    figure: Figure
    caption: str
    frames: list[Callable[[], Figure]] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """One figure: its id in the inventory, what it shows, where its numbers come from, and what draws it.

    draw(studio, **changes) -> Drawing.
    """

    id: str
    title: str
    source: str  # a key of SOURCES
    data: str  # keys of DATA, joined by " + "
    draw: Callable[..., Drawing]

    @property
    def function(self) -> str:
        """The dotted name of what draws it."""
        return f"{self.draw.__module__}.{self.draw.__qualname__}"

    @property
    def file(self) -> str:
        """Where the command writes it, relative to the repository."""
        return f"figures/{self.id}.png"

    def as_json(self) -> dict[str, Any]:
        """A dict of plain values."""
        return {
            "id": self.id,
            "title": self.title,
            "file": self.file,
            "source": self.source,
            "data": self.data,
            "function": self.function,
        }


REGISTER: dict[str, Entry] = {}


def figure(id: str, title: str, *, source: str, data: str):
    """Decorate a function draw(studio, **changes) -> Drawing: it enters the register under this id."""

    def enter(draw: Callable[..., Drawing]) -> Callable[..., Drawing]:
        assert id not in REGISTER, f"{id} is drawn twice"
        REGISTER[id] = Entry(id, title, source, data, draw)
        return draw

    return enter
