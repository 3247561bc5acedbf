"""load_folder, which reads a Hugging Face folder: config.json and safetensors files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.interop.families import FAMILIES, Family, WeightRow
from npformer.interop.families.family import Stored
from npformer.interop.families.parts import HEAD
from npformer.interop.mapped_tensors import check_mapped, map_tensor
from npformer.interop.settings_file import Settings, read_settings
from npformer.interop.tensor_files import StoredTensor, stored_tensors
from npformer.nn.init import UNDRAWN
from npformer.nn.module import Parameter
from npformer.validation import require_choice, short

DTYPES = ("float32", "float64")

Progress = Callable[[int, int], None]  # called with the bytes that were read, and the bytes of all tensors


@dataclass(frozen=True)
class FolderContent:
    """The settings and the headers of the tensors of a folder, checked against each other.

    Attributes:
        settings: The settings of its config.json.
        family: Its family.
        config: Our configuration.
        tensors: The tensors that are parameters, by their current names.
        rows: The rows that relate our parameters to the tensors.
    """

    settings: Settings
    family: Family
    config: Any
    tensors: dict[str, StoredTensor]
    rows: list[WeightRow]


@dataclass(frozen=True)
class LoadedFolder:
    """A model that was read from a Hugging Face folder.

    Attributes:
        model: Our model, such as a GPT, with forward and backward.
        family: Its family.
        folder: The folder.
        settings: The settings of its config.json.
    """

    model: Any
    family: Family
    folder: Path
    settings: Settings


def load_folder(
    folder: str | PathLike[str], dtype: Any = np.float32, *, progress: Progress | None = None
) -> LoadedFolder:
    """Read the model of a Hugging Face folder.

    No initial values are drawn. Tensors that are our parameters as they stand, in the dtype of the model,
    stay in their files until they are used (see mapped_tensors.py for what this asks of the files). The
    others are read one after the other. So the memory in use is that of the weights, once. What needs all
    weights in one array, such as an optimizer, copies those that are in the files; `model.flatten()` does so
    at once.

    Args:
        folder: The folder, with a config.json and safetensors files.
        dtype: The dtype of the model, float32 or float64. Weights in another precision are converted.
        progress: A function that is called after each tensor with the bytes that were read, and with the
            bytes of all tensors.

    Returns:
        The model, with its family and its settings.

    Raises:
        UserError: If a file is missing, damaged or forged, if the model is of another family or has an option
            that npformer does not support, or if a tensor is missing, unknown or of another shape.
    """
    dtype = checked_dtype(dtype)
    content = open_folder(folder)
    try:
        model = content.family.model(content.config, rng=UNDRAWN, dtype=dtype)
    except MemoryError:
        n_bytes = content.config.least_parameters * dtype.itemsize
        raise UserError(f"{folder} needs {n_bytes / 1e9:,.1f} GB of memory: use a smaller model") from None
    _give_values(model, content, progress)
    return LoadedFolder(model, content.family, Path(folder), content.settings)


def open_folder(folder: str | PathLike[str]) -> FolderContent:
    """Read what a Hugging Face folder says about its model, and no numbers.

    Raises:
        UserError: If `load_folder` cannot read the model, except for numbers that are not finite.
    """
    folder = Path(folder)
    settings = read_settings(folder)
    if not settings.has("model_type"):
        raise UserError(
            f"{settings.place} has no model_type, which old versions of transformers did not write: add the "
            'family of the model, such as "model_type": "bert"'
        )
    family = settings.choice("model_type", {name: FAMILIES.find(name) for name in FAMILIES.names()})
    if settings.has("quantization_config"):
        raise UserError(f"{settings.place} describes quantized weights: use a model without quantization")
    config, stored = family.config_of(settings), stored_tensors(folder)
    if family.fit_head is not None:
        config = family.fit_head(config, Stored(settings, stored))
    tensors = _parameter_tensors(folder, family, config, stored)
    rows = list(_checked_rows(family.rows(config), tensors, folder, settings))
    _require_no_others(rows, tensors, family)
    return FolderContent(settings, family, config, tensors, rows)


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of a model, which is float32 or float64."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    require_choice("dtype", name, DTYPES)
    return np.dtype(name)


def _parameter_tensors(
    folder: Path, family: Family, config: Any, stored: dict[str, StoredTensor]
) -> dict[str, StoredTensor]:
    """Return the tensors that are parameters, by their current names."""
    tensors: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        current = family.tensor_name(name, config)
        if current is None:
            continue
        if current in tensors:
            raise UserError(
                f"{folder} has both {short(tensors[current].name)} and {short(name)}, which are the same "
                "tensor: use an undamaged model"
            )
        tensors[current] = tensor
    return tensors


def _checked_rows(
    rows: Iterator[WeightRow], tensors: dict[str, StoredTensor], folder: Path, settings: Settings
) -> Iterator[WeightRow]:
    """Yield the rows whose tensors are in the files with the right shapes, and raise UserError at others.

    Nothing is allocated before this check. It stops at the first tensor that is missing, so a forged
    config.json cannot make it long.
    """
    for row in rows:
        for name, shape in zip(row.theirs, row.their_shapes(), strict=True):
            if name not in tensors:
                remedy = f"download the model again{_other_remedy(name, tensors)}"
                raise UserError(f"{folder} has no tensor {name}: {remedy}")
            found = tensors[name].shape
            if found != shape:
                raise UserError(
                    f"{name} in {tensors[name].path} has the shape {short(list(found))}, and the settings of "
                    f"{settings.place} make it {short(list(shape))}: use the files of one model"
                )
        yield row


def _other_remedy(name: str, tensors: Collection[str]) -> str:
    """Return what else may help if there is no tensor with this name: a part of the model was not saved."""
    if name == HEAD:
        return ", or if it is a classifier, save its base_model with transformers"
    if "decoder." in name and not any("decoder." in each for each in tensors):
        return ", or if it was saved without its decoder (as T5EncoderModel), save the whole model"
    return ""


def _require_no_others(rows: list[WeightRow], tensors: dict[str, StoredTensor], family: Family) -> None:
    """Refuse a folder with tensors that are not parameters of the model."""
    for name in sorted(tensors.keys() - {name for row in rows for name in row.theirs}):
        raise UserError(
            f"{tensors[name].path} has the tensor {short(tensors[name].name)}, which no {family.name} with "
            "these settings has: use a model of this family"
        )


def _give_values(model: Any, content: FolderContent, progress: Progress | None) -> None:
    """Map or read the values of all parameters."""
    parameters: dict[str, Parameter] = dict(model.named_parameters())
    assert parameters.keys() == {row.ours for row in content.rows}
    mapped = _mapped_values(content, parameters)
    if mapped:
        model.unflatten(mapped)
    total, done = sum(tensor.size for tensor in content.tensors.values()), 0
    for row in content.rows:
        for name, first, view in row.pieces(parameters[row.ours].value):
            tensor = content.tensors[name]
            if row.ours in mapped:
                check_mapped(tensor)
            else:
                tensor.read_into(view, first)
                if row.added:
                    view += row.added
            done += tensor.size if row.first_rows is None else tensor.row_size * len(view)
            if progress is not None:
                progress(done, total)


def _mapped_values(content: FolderContent, parameters: dict[str, Parameter]) -> dict[str, Array]:
    """Return the values of the parameters that can stay in their files, by our names."""
    mapped = {}
    for row in content.rows:
        if row.is_as_stored:
            value = map_tensor(content.tensors[row.theirs[0]], parameters[row.ours].value.dtype)
            if value is not None:
                mapped[row.ours] = value
    return mapped
