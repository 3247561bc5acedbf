"""Family and WeightRow: what a family of models must say so that its folders can be read and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from npformer.backend import Array
from npformer.interop.settings_file import Settings


@dataclass(frozen=True)
class WeightRow:
    """One of our parameters, and the tensor or tensors of a file that hold its values.

    Several tensors lie side by side along the last axis of our parameter: our fused projection is (D, 3D),
    and a file has three matrices for it. The same rows serve reading and writing.

    Attributes:
        ours: The dotted name of the parameter, as in named_parameters().
        shape: Its shape.
        theirs: The names of the tensors.
        widths: The width of each tensor along our last axis. None means equal widths.
        transpose: True if the tensors are matrices (out, in): our weights are (in, out).
        leading_axis: True if the tensor has an additional first axis of length 1.
    """

    ours: str
    shape: tuple[int, ...]
    theirs: tuple[str, ...]
    widths: tuple[int, ...] | None = None
    transpose: bool = False
    leading_axis: bool = False

    def their_views(self, value: Array) -> list[Array]:
        """Return the part of our array that each tensor holds, as a view in the shape of the tensor.

        Args:
            value: The values of our parameter, of its shape.
        """
        views, start = [], 0
        for width in self._widths():
            view = value[..., start : start + width]
            view = view.T if self.transpose else view
            views.append(view[None] if self.leading_axis else view)
            start += width
        return views

    @property
    def is_as_stored(self) -> bool:
        """True if one tensor of a file is our parameter as it stands."""
        return len(self.theirs) == 1 and not self.transpose and not self.leading_axis

    def their_shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each tensor."""
        shapes = [(*self.shape[:-1], width) for width in self._widths()]
        shapes = [shape[::-1] if self.transpose else shape for shape in shapes]
        return [(1, *shape) if self.leading_axis else shape for shape in shapes]

    def _widths(self) -> tuple[int, ...]:
        """Return the width of each tensor along our last axis."""
        n = len(self.theirs)
        return (self.shape[-1] // n,) * n if self.widths is None else self.widths


@dataclass(frozen=True)
class Family:
    """A family of models of Hugging Face, such as GPT-2.

    Attributes:
        name: The `model_type` of its config.json.
        model: Our class of the model, called as model(config, rng=..., dtype=...).
        config_of: The function from the settings of a config.json to our configuration. It refuses every
            option that our model does not have.
        settings_of: The function from our configuration to the content of a config.json. It leaves out what
            the family does not have, so that config_of returns another configuration then.
        rows: The function from our configuration to its rows. It yields them one by one, because a forged
            config.json may ask for billions of layers.
        tensor_name: The function from the name of a tensor in a file, and our configuration, to the name that
            transformers now gives it: older files say gamma for weight, or lack a prefix. None stands for a
            tensor that is not a parameter, such as a mask, and is skipped.
        with_head: The function from our configuration, the settings and the names of the tensors in the files
            to the configuration with the head that the files have. None for a family with one head.
    """

    name: str
    model: Callable[..., Any]
    config_of: Callable[[Settings], Any]
    settings_of: Callable[[Any], dict[str, Any]]
    rows: Callable[[Any], Iterator[WeightRow]]
    tensor_name: Callable[[str, Any], str | None]
    with_head: Callable[[Any, Settings, Collection[str]], Any] | None = None
