"""export_folder, which writes a model of npformer as a Hugging Face folder.

The families say what is which: `settings_of` gives the config.json, and the rows that read the tensors of a
file write them here. A layout has no place for every option of our models. So the config.json is read back
before anything is written, and the folder is refused if it would describe another model.
"""

from __future__ import annotations

import dataclasses
import json
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import numpy as safetensors

from npformer.backend import Array, to_numpy
from npformer.errors import UserError
from npformer.interop.families import FAMILIES, Family
from npformer.interop.families.family import Stored
from npformer.interop.families.settings_table import effective
from npformer.interop.settings_file import FILE, Settings
from npformer.interop.tensor_files import ONE_FILE
from npformer.storage.atomic import make_folder, write_file

# the settings that act only in training, that say only how our projections are stored, or whose effect is
# compared in another way
WITHOUT_EFFECT = {
    "dropout",
    "attention_dropout",
    "feed_forward_dropout",
    "embedding_dropout",
    "label_smoothing",
    "balance_weight",
    "fused_projections",
    # of the scaling
    "rotary_factor",
    "rotary_low_factor",
    "rotary_high_factor",
    "rotary_original_context",
    "pad_id",  # a GPT has no loss at padding; where it is masked, it is in the settings of the family
}


def export_folder(model: Any, folder: str | PathLike[str], family: str | None = None) -> Path:
    """Write a model as a folder that `load_folder` and transformers read.

    The folder gets a model.safetensors, in the dtype of the model, and a config.json, which is written last:
    a folder without it is not a model. The tokenizer is not written.

    Args:
        model: The model.
        folder: The folder, which must be new or empty.
        family: The layout, such as "gpt2", "llama" or "marian": one of the families of
            npformer.interop.families. The default is the one that fits the model.

    Returns:
        The folder.

    Raises:
        UserError: If the layout cannot express the model, if the folder has other files, or if it cannot be
            written.
    """
    folder = Path(folder)
    layout = _family_of(model, family)
    settings = checked_settings(model.config, layout)
    settings |= {"dtype": model.parameters()[0].value.dtype.name}
    make_folder(folder)
    if any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: give a new folder, since no file is overwritten")
    tensors = tensors_of(model, layout)
    # transformers reads only files whose metadata name a library of tensors, "pt" for PyTorch
    write_file(folder / ONE_FILE, safetensors.save(tensors, metadata={"format": "pt"}))
    write_file(folder / FILE, f"{json.dumps(settings, indent=2)}\n".encode())
    return folder


def tensors_of(model: Any, family: Family) -> dict[str, Array]:
    """Return the tensors of a model by the names of a family, in its shapes.

    Args:
        model: The model.
        family: The family.
    """
    parameters = dict(model.named_parameters())
    tensors: dict[str, Array] = {}
    for row in family.rows(model.config):
        value = to_numpy(parameters.pop(row.ours).value)
        row.write(value, tensors)
    assert not parameters, f"{family.name} has no tensors for {', '.join(parameters)}"
    return tensors


def _family_of(model: Any, name: str | None) -> Family:
    """Return the family of this name, or the one that fits the model.

    Raises:
        UserError: If there is no such family, or if its models are of another class.
    """
    fitting = {each: FAMILIES.find(each) for each in FAMILIES.names()}
    fitting = {each: family for each, family in fitting.items() if family.model is type(model)}
    kind = type(model).__name__
    if not fitting:
        inner = getattr(model, "model", None)  # a model as npformer.load returns it
        remedy = "export a model of another kind, such as a GPT" if inner is None else "give its .model"
        raise UserError(f"a {kind} has no Hugging Face layout: {remedy}")
    if name is None:
        name = _usual_name(model.config, list(fitting))
    family = FAMILIES.find(name)
    if name not in fitting:
        raise UserError(f"a {kind} cannot be written as {name}: give one of {', '.join(fitting)}")
    return family


def _usual_name(config: Any, names: list[str]) -> str:
    """Return the name of the family that fits a configuration, among those of its class."""
    if "gpt2" in names and config.positions == "rotary":
        if config.has_qkv_bias and not config.bias:
            return "qwen2"
        return "llama" if config.window is None else "mistral"
    if "mixtral" in names:
        return "qwen3_moe" if config.qk_norm else "mixtral"
    if "bart" in names:
        return "bart" if config.norm == "post" else "mbart"
    if "gemma2" in names:
        return "gemma3_text" if config.qk_norm else "gemma2"
    if "bert" in names and config.first_position:
        return "roberta"
    if "bert" in names and not config.n_segments:
        return "distilbert"
    return names[0]


def checked_settings(config: Any, family: Family) -> dict[str, Any]:
    """Return the content of the config.json of a model with a configuration.

    Raises:
        UserError: If it describes another model.
    """
    settings = {"model_type": family.name, **family.settings_of(config)}
    described = family.config_of(Settings(settings))
    if family.fit_head is not None:
        names = {name for row in family.rows(config) for name in row.theirs}
        described = family.fit_head(described, Stored(Settings(settings), names))
    for name, value in _with_effect(described).items():
        own = _with_effect(config)[name]
        if own != value:
            raise UserError(
                f"{name} of the model is {own!r}, and in a {family.name} it is {value!r}: train a model with "
                "this setting, or choose another layout"
            )
    return settings


def _with_effect(config: Any) -> dict[str, Any]:
    """Return the settings that determine the logits, with the values that have an effect."""
    return {
        field.name: effective(config, field.name)
        for field in dataclasses.fields(config)
        if field.name not in WITHOUT_EFFECT
    }
