"""The registry of the figures: the decorator @figure("F14", ...) registers the function that draws F14."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from npformer.errors import Registry
from npformer.plots import Figure

SOURCES = {
    "jianshu": "一步步解析Attention is All You Need!",
    "datawhale": "图解transformer",
    "zhihu": "Attention机制详解（二）",
    "paperspace": "The components of the Transformer",
    "course": "The course of npformer",
}
DATA = {
    "FO": "a formula",
    "FW": "tensors of a forward pass",
    "TR": "a model trained here",
    "SC": "a schematic, laid out from a configuration",
}


@dataclass
class Drawing:
    """A figure with its caption, and the frames of its animation if it has one.

    Each of `frames` is a function that draws one frame, for npformer.plots.animated_gif.
    """

    figure: Figure
    caption: str
    frames: list[Callable[[], Figure]] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """A figure: its id and title, its document, the kind of its numbers, and the function that draws it.

    The function is called as draw(studio, **changes) and returns a Drawing.
    """

    id: str
    title: str
    source: str  # a key of SOURCES
    data: str  # keys of DATA, joined by " + "
    draw: Callable[..., Drawing]

    @property
    def function(self) -> str:
        """The dotted name of the function that draws the figure."""
        return f"{self.draw.__module__}.{self.draw.__qualname__}"

    @property
    def file(self) -> str:
        """The file that the command writes, relative to the repository."""
        return f"figures/{self.id}.png"

    def as_json(self) -> dict[str, Any]:
        """Return the entry as a dict of plain values."""
        return {
            "id": self.id,
            "title": self.title,
            "file": self.file,
            "source": self.source,
            "data": self.data,
            "function": self.function,
        }


FIGURES: Registry[Entry] = Registry("figure", "npformer figures --list")

Draw = TypeVar("Draw", bound=Callable[..., Drawing])


def figure(id: str, title: str, *, source: str, data: str) -> Callable[[Draw], Draw]:
    """Return a decorator that registers a function draw(studio, **changes) -> Drawing under an id.

    Args:
        id: The id of the figure, such as "F14".
        title: The title of the figure.
        source: The document of the figure, a key of SOURCES.
        data: The kind of its numbers: keys of DATA, joined by " + ".
    """

    def enter(draw: Draw) -> Draw:
        FIGURES.register(id, Entry(id, title, source, data, draw))
        return draw

    return enter
