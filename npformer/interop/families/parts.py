"""The rows of layers and the names of activations that several families have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import WeightRow
from npformer.interop.settings_file import Settings

HEAD = "lm_head.weight"  # the output of a decoder-only model, if it is not the table of tokens
OLD_HEAD = "embed_out.weight"  # its name in the files that version 4 of transformers wrote for GPT-NeoX
PREFIXES = ("model.", "transformer.", "gpt_neox.")  # of names in the files of decoder-only models with a head

# the names of activations in a config.json, and ours
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "linear": "none",
}


def name_of_activation(activation: str, names: Mapping[str, str] = ACTIVATIONS) -> str:
    """Return the name in a config.json of one of our activations, the first one if it has several.

    Args:
        activation: Our name.
        names: Our name of each name that a config.json of the family may have.

    Raises:
        UserError: If the family has no such activation.
    """
    for theirs, ours in names.items():
        if ours == activation:
            return theirs
    raise UserError(
        f"activation of the model is {activation!r}, and the layout has only "
        f"{', '.join(dict.fromkeys(names.values()))}: choose another layout"
    )


def linear_rows(ours: str, theirs: Sequence[str], n_in: int, n_out: int) -> Iterator[WeightRow]:
    """Yield the rows of a linear map, whose weights are (out, in) in the file.

    Args:
        ours: The name of our layer.
        theirs: The names of their layers. The outputs of several lie side by side in the output of ours.
        n_in: The width of the input.
        n_out: The width of the output of ours.
    """
    yield WeightRow(
        f"{ours}.weight", (n_in, n_out), tuple(f"{name}.weight" for name in theirs), transpose=True
    )
    yield WeightRow(f"{ours}.bias", (n_out,), tuple(f"{name}.bias" for name in theirs))


def norm_rows(ours: str, theirs: str, width: int) -> Iterator[WeightRow]:
    """Yield the rows of a layer norm.

    Args:
        ours: The name of our layer.
        theirs: The name of their layer.
        width: The width of its input.
    """
    yield WeightRow(f"{ours}.gain", (width,), (f"{theirs}.weight",))
    yield WeightRow(f"{ours}.bias", (width,), (f"{theirs}.bias",))


def with_head(config: Any, settings: Settings, stored: Collection[str]) -> Any:
    """Return the configuration of a decoder-only model without a head if the files have none.

    Such files, as those of LlamaModel and GPT2Model, lack the prefix of the names as well. If the output is
    the table of tokens, they have all that a head needs.

    Args:
        config: The configuration.
        settings: The settings of the config.json.
        stored: The names of the tensors in the files.
    """
    if config.tied or any(name in (HEAD, OLD_HEAD) or name.startswith(PREFIXES) for name in stored):
        return config
    return config.replace(head=False)
