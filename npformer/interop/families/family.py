"""Family and WeightRow: what a family of models must say so that its folders can be read and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.interop.settings_file import Settings


class Piece(NamedTuple):
    """The rows of a tensor that hold a part of one of our parameters."""

    tensor: str
    first: int  # the first of these rows; all others follow
    view: Array  # our part, as a view in the shape of these rows


@dataclass(frozen=True)
class WeightRow:
    """One of our parameters, and the tensor or tensors of a file that hold its values.

    Several tensors lie side by side along the last axis of our parameter: our fused projection is (D, 3D),
    and a file has three matrices for it. The same rows serve reading and writing. A tensor may also hold more
    than this parameter: then `first_rows` says where its rows are in the tensor.

    Attributes:
        ours: The dotted name of the parameter, as in named_parameters().
        shape: Its shape.
        theirs: The names of the tensors.
        widths: The width of each tensor along our last axis. None means equal widths.
        transpose: True if the tensors are matrices (out, in): our weights are (in, out).
        leading_axis: True if the tensor has an additional first axis of length 1.
        first_rows: The row of each tensor, along its first axis, at which our part begins. None means that
            each tensor is our part and nothing else.
        n_rows: The number of rows of each tensor, if first_rows is given.
        added: The number that we add to the values of the tensors. Gemma stores the gain of a norm minus 1.
    """

    ours: str
    shape: tuple[int, ...]
    theirs: tuple[str, ...]
    widths: tuple[int, ...] | None = None
    transpose: bool = False
    leading_axis: bool = False
    first_rows: tuple[int, ...] | None = None
    n_rows: int | None = None
    added: float = 0.0

    def pieces(self, value: Array) -> Iterator[Piece]:
        """Yield the part of our array that each tensor holds.

        Args:
            value: The values of our parameter, of its shape.
        """
        start, first_rows = 0, self.first_rows or (0,) * len(self.theirs)
        for tensor, first, width in zip(self.theirs, first_rows, self._widths(), strict=True):
            view = value[..., start : start + width]
            view = view.T if self.transpose else view
            yield Piece(tensor, first, view[None] if self.leading_axis else view)
            start += width

    def write(self, value: Array, tensors: dict[str, Array]) -> None:
        """Put our array into a dict with the tensors of a file. Rows that hold nothing of ours are 0.

        Args:
            value: The values of our parameter, of its shape.
            tensors: The tensors by name. A tensor that is not among them yet is added.
        """
        for (name, first, view), shape in zip(self.pieces(value), self.their_shapes(), strict=True):
            theirs = view - self.added if self.added else view
            if self.first_rows is None:
                tensors[name] = np.ascontiguousarray(theirs)
            else:
                tensors.setdefault(name, np.zeros(shape, value.dtype))[first : first + len(view)] = theirs

    @property
    def is_as_stored(self) -> bool:
        """True if one tensor of a file is our parameter as it stands."""
        is_whole = self.first_rows is None and not self.added
        return len(self.theirs) == 1 and is_whole and not self.transpose and not self.leading_axis

    def their_shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each tensor."""
        shapes = [(*self.shape[:-1], width) for width in self._widths()]
        shapes = [shape[::-1] if self.transpose else shape for shape in shapes]
        shapes = shapes if self.n_rows is None else [(self.n_rows, *shape[1:]) for shape in shapes]
        return [(1, *shape) if self.leading_axis else shape for shape in shapes]

    def _widths(self) -> tuple[int, ...]:
        """Return the width of each tensor along our last axis."""
        n = len(self.theirs)
        return (self.shape[-1] // n,) * n if self.widths is None else self.widths


class Stored(NamedTuple):
    """The content of the files of a folder, as far as it decides which head a model has."""

    settings: Settings  # those of the config.json
    tensors: Collection[str]  # the names of the tensors


@dataclass(frozen=True)
class Family:
    """A family of models of Hugging Face, such as GPT-2.

    Attributes:
        name: The `model_type` of its config.json.
        model: Our class of the model, called as model(config, rng=..., dtype=...).
        config_of: The function from the settings of a config.json to our configuration. It refuses every
            option that our model does not have.
        settings_of: The function from our configuration to the content of a config.json, without the name of
            the family. It leaves out what the family does not have, so that config_of returns another
            configuration then.
        rows: The function from our configuration to its rows. It yields them one by one, because a forged
            config.json may ask for billions of layers.
        tensor_name: The function from the name of a tensor in a file, and our configuration, to the name that
            transformers now gives it: older files say gamma for weight, or lack a prefix. None stands for a
            tensor that is not a parameter, such as a mask, and is skipped.
        fit_head: The function from our configuration and what the files hold to the configuration with the
            head that they have. None for a family with one head.
    """

    name: str
    model: Callable[..., Any]
    config_of: Callable[[Settings], Any]
    settings_of: Callable[[Any], dict[str, Any]]
    rows: Callable[[Any], Iterator[WeightRow]]
    tensor_name: Callable[[str, Any], str | None]
    fit_head: Callable[[Any, Stored], Any] | None = None
