"""Sizes, rows of layers, names of tensors and activations, and the head, which several families share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from npformer.interop.families.family import Stored, WeightRow
from npformer.interop.families.settings_table import SettingRow, count

HEAD = "lm_head.weight"  # the matrix of the output, if it is not the table of tokens
OLD_HEAD = "embed_out.weight"  # its name in the files that version 4 of transformers wrote for GPT-NeoX
PREFIXES = ("model.", "transformer.", "gpt_neox.")  # of names in the files of decoder-only models with a head

# the names of activations in a config.json, and ours
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
    "linear": "none",
}

# else transformers takes ids that are ordinary tokens here
NO_SPECIAL_TOKENS = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))


def sizes(**defaults: int) -> tuple[SettingRow, ...]:
    """Return the rows of the sizes of the layers, in the names that most families give them.

    Args:
        defaults: The values for a file that lacks them, by our names. Without them, the file must have all.
    """
    theirs = {
        "d_model": "hidden_size",
        "d_ff": "intermediate_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
    }
    return tuple(count(name, theirs[name], defaults.get(name)) for name in theirs)


class LayerShape(NamedTuple):
    """The shape of a layer of a Transformer.

    Attributes:
        d_model: The width D of the layer.
        d_ff: The width F of the hidden layer of its feed-forward network.
        queries: The width of the queries of all heads together; None means D.
        keys: The width of their keys, which is that of their values; None means the same.
        bias: False if norms and linear maps have no biases.
        qkv_bias: Whether queries, keys and values have biases; None means the same.
        fused: True if our queries, keys and values are one linear map. In cross-attention, queries are apart.
    """

    d_model: int
    d_ff: int
    queries: int | None = None
    keys: int | None = None
    bias: bool = True
    qkv_bias: bool | None = None
    fused: bool = True


def layer_rows(
    ours: str, theirs: str, parts: Mapping[str, str | Sequence[str]], shape: LayerShape
) -> Iterator[WeightRow]:
    """Yield the rows of a layer of a Transformer.

    Args:
        ours: The name of our layer.
        theirs: The name of theirs.
        parts: The name within theirs of each part of ours: a norm, the output of an attention, an attention,
            which has the four names of queries, keys, values and output, or a feed-forward network, which
            has those of its linear maps in their order; a gate comes first.
        shape: The shape of the layer.
    """
    d, f, bias = shape.d_model, shape.d_ff, shape.bias
    q = d if shape.queries is None else shape.queries
    k = q if shape.keys is None else shape.keys
    qkv_bias = bias if shape.qkv_bias is None else shape.qkv_bias
    for part, name in parts.items():
        if part == "feed_forward":
            maps = ("gate", "value", "outer") if len(name) == 3 else ("inner", "outer")
            for each, tensor in zip(maps, name, strict=True):
                size = (f, d) if each == "outer" else (d, f)
                yield from linear_rows(f"{ours}.{part}.{each}", [f"{theirs}.{tensor}"], *size, bias=bias)
        elif not isinstance(name, str):  # an attention
            projections = {"query": (name[0], q), "key": (name[1], k), "value": (name[2], k)}
            for group in _groups(shape.fused, is_cross=part == "cross"):
                linear = [f"{theirs}.{projections[each][0]}" for each in group]
                widths = tuple(projections[each][1] for each in group)
                projection = f"{ours}.{part}.{'_'.join(group)}"
                yield from linear_rows(projection, linear, d, sum(widths), widths, bias=qkv_bias)
            yield from linear_rows(f"{ours}.{part}.output", [f"{theirs}.{name[3]}"], q, d, bias=bias)
        elif part.startswith("norm"):
            yield from norm_rows(f"{ours}.{part}", f"{theirs}.{name}", d, bias=bias)
        else:
            yield from linear_rows(f"{ours}.{part}", [f"{theirs}.{name}"], q, d, bias=bias)


def _groups(fused: bool, *, is_cross: bool) -> list[tuple[str, ...]]:
    """Return which of queries, keys and values are together one linear map of ours."""
    if not fused:
        return [("query",), ("key",), ("value",)]
    return [("query",), ("key", "value")] if is_cross else [("query", "key", "value")]


def linear_rows(
    ours: str,
    theirs: Sequence[str],
    n_in: int,
    n_out: int,
    widths: tuple[int, ...] | None = None,
    *,
    bias: bool = True,
) -> Iterator[WeightRow]:
    """Yield the rows of a linear map, whose weights are (out, in) in the file.

    Args:
        ours: The name of our layer.
        theirs: The names of their layers. The outputs of several lie side by side in the output of ours.
        n_in: The width of the input.
        n_out: The width of the output of ours.
        widths: The widths of the outputs of theirs. None means equal widths.
        bias: False if there is none.
    """
    weights, biases = (tuple(f"{name}.{kind}" for name in theirs) for kind in ("weight", "bias"))
    yield WeightRow(f"{ours}.weight", (n_in, n_out), weights, widths, transpose=True)
    if bias:
        yield WeightRow(f"{ours}.bias", (n_out,), biases, widths)


def norm_rows(ours: str, theirs: str, width: int, *, bias: bool = True) -> Iterator[WeightRow]:
    """Yield the rows of a norm.

    Args:
        ours: The name of our layer.
        theirs: The name of their layer.
        width: The width of its input.
        bias: False for an RMS norm, which has none.
    """
    yield WeightRow(f"{ours}.gain", (width,), (f"{theirs}.weight",))
    if bias:
        yield WeightRow(f"{ours}.bias", (width,), (f"{theirs}.bias",))


def head_rows(config: Any) -> Iterator[WeightRow]:
    """Yield the row of the output of a decoder-only model, if it has a head that is not the table of tokens.

    Args:
        config: The configuration.
    """
    if config.head and not config.tied:
        yield from linear_rows("output", ["lm_head"], config.d_model, config.vocab_size, bias=False)


def tensor_name(name: str, config: Any, *, prefix: str, skipped: str = "") -> str | None:
    """Return the current name of a tensor of a decoder-only model, or None for one that is no parameter.

    Files of a model without its head lack the prefix, and old files hold masks or angles that follow from
    the settings. The copy of a tied weight is no parameter either.

    Args:
        name: The name in the file.
        config: The configuration.
        prefix: The beginning of all names but that of the head.
        skipped: The pattern of the names of tensors that are no parameters, after the prefix.
    """
    if name in (HEAD, OLD_HEAD):
        return None if config.tied else HEAD
    name = name.removeprefix(prefix)
    return None if re.fullmatch(skipped, name) else prefix + name


def fit_head(config: Any, stored: Stored) -> Any:
    """Return the configuration of a decoder-only model, with head=False if the files hold no head.

    Such files, as those of LlamaModel and GPT2Model, lack the prefix of the names as well. If the output is
    the table of tokens, they have all that a head needs.

    Args:
        config: The configuration.
        stored: What the files hold.
    """
    if config.tied or any(name in (HEAD, OLD_HEAD) or name.startswith(PREFIXES) for name in stored.tensors):
        return config
    return config.replace(head=False)
