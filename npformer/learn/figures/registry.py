"""The registry of the figures: the decorator @figure("F14", ...) registers the function that draws F14."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from npformer.errors import Registry
from npformer.learn.figures.studio import Studio
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

    Attributes:
        id: The id, such as "F14".
        title: The title, which is the alternative text of the picture too.
        source: The document of the figure, a key of SOURCES.
        data: The kind of its numbers: keys of DATA, joined by " + ".
        lessons: The numbers of the lessons to which it belongs, the most important one first.
        function: The function that draws the figure. The first argument of one with a trained model is a
            Studio, and then it takes the inputs, if there are any. Its keywords are settings of the figure.
        inputs: The function that makes the inputs that several figures share, with settings of its own.
    """

    id: str
    title: str
    source: str
    data: str
    lessons: tuple[str, ...]
    function: Callable[..., Drawing]
    inputs: Callable[..., Any] | None = None

    def draw(self, studio: Studio | None = None, **changes: Any) -> Drawing:
        """Draw the figure.

        Args:
            studio: The source of trained models; by default a new one, which trains them when needed.
            changes: Settings of the figure.
        """
        given: list[Any] = [studio or Studio()] if "TR" in self.data else []
        if self.inputs is not None:
            own = inspect.signature(self.function).parameters
            given.append(self.inputs(**{name: changes.pop(name) for name in set(changes) - set(own)}))
        return self.function(*given, **changes)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the figure, with their defaults."""
        functions = [each for each in (self.inputs, self.function) if each is not None]
        arguments = [
            each for function in functions for each in inspect.signature(function).parameters.values()
        ]
        more = getattr(self.inputs, "keywords", {})
        return {each.name: each.default for each in arguments if each.default is not each.empty} | more

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
            "function": f"{self.function.__module__}.{self.function.__qualname__}",
        }


FIGURES: Registry[Entry] = Registry("figure", "npformer figures --list")

Draw = TypeVar("Draw", bound=Callable[..., Drawing])


def figure(
    id: str,
    title: str,
    source: str,
    data: str,
    lessons: str,
    inputs: Callable[..., Any] | None = None,
    **defaults: Any,
) -> Callable[[Draw], Draw]:
    """Return a decorator that registers the function of a figure, which returns a Drawing.

    Args:
        id, title, source, data, inputs: As for Entry.
        lessons: The numbers of the lessons, with spaces between them.
        defaults: Defaults of the inputs' settings for this figure.
    """

    def enter(function: Draw) -> Draw:
        make = partial(inputs, **defaults) if inputs is not None and defaults else inputs
        FIGURES.register(id, Entry(id, title, source, data, tuple(lessons.split()), function, make))
        return function

    return enter
