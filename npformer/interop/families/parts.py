"""Rows of layers, names of activations and types of layers that several families have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from npformer.errors import UserError
from npformer.interop.families.family import Stored, WeightRow
from npformer.interop.settings_file import Settings
from npformer.validation import short

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

# the types of layers, those with a window and the others
TYPES = ("sliding_attention", "full_attention")


class LayerShape(NamedTuple):
    """The shape of a layer of a Transformer.

    Attributes:
        d_model: The width D of the layer.
        d_ff: The width F of the hidden layer of its feed-forward network.
        heads: The width of all heads of queries together; None means D.
        key_heads: That of all heads of keys, or of values; None means the same.
        bias: False if norms and linear maps have no biases.
        qkv_bias: Whether queries, keys and values have biases; None means the same.
        fused: True if our queries, keys and values are one linear map. In cross-attention, queries are apart.
    """

    d_model: int
    d_ff: int
    heads: int | None = None
    key_heads: int | None = None
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
        parts: The name within theirs of each part of ours: a norm, a linear map, or an attention, which has
            the four names of queries, keys, values and output.
        shape: The shape of the layer.
    """
    d, f, bias = shape.d_model, shape.d_ff, shape.bias
    h = d if shape.heads is None else shape.heads
    g = h if shape.key_heads is None else shape.key_heads
    qkv_bias = bias if shape.qkv_bias is None else shape.qkv_bias
    sizes = {"output": (h, d), "inner": (d, f), "gate": (d, f), "value": (d, f), "outer": (f, d)}
    for part, name in parts.items():
        if not isinstance(name, str):  # an attention
            projections = {"query": (name[0], h), "key": (name[1], g), "value": (name[2], g)}
            for group in _groups(shape.fused, is_cross=part == "cross"):
                linear = [f"{theirs}.{projections[each][0]}" for each in group]
                widths = tuple(projections[each][1] for each in group)
                projection = f"{ours}.{part}.{'_'.join(group)}"
                yield from linear_rows(projection, linear, d, sum(widths), widths, bias=qkv_bias)
            yield from linear_rows(f"{ours}.{part}.output", [f"{theirs}.{name[3]}"], h, d, bias=bias)
        elif part.startswith("norm"):
            yield from norm_rows(f"{ours}.{part}", f"{theirs}.{name}", d, bias=bias)
        else:
            size = sizes[part.rpartition(".")[2]]
            yield from linear_rows(f"{ours}.{part}", [f"{theirs}.{name}"], *size, bias=bias)


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


def local_layers(settings: Settings, every: int) -> tuple[int, ...]:
    """Return the layers of a file that have a window: by default, all but every n-th layer.

    Args:
        settings: The settings of a config.json.
        every: The number n.
    """
    n_layers = settings.count("num_hidden_layers")
    types = settings.values.get("layer_types")
    if types is None:
        types = [TYPES[(i + 1) % every == 0] for i in range(n_layers)]
    if not isinstance(types, list) or len(types) != n_layers or any(each not in TYPES for each in types):
        raise UserError(
            f"layer_types is {short(types)} in {settings.place}: it must have {TYPES[0]!r} or {TYPES[1]!r} "
            f"for each of the {n_layers} layers"
        )
    return tuple(i for i in range(n_layers) if types[i] == TYPES[0])


def layer_types(config: Any) -> list[str]:
    """Return the setting layer_types, the way back from local_layers."""
    return [TYPES[i not in config.local] for i in range(config.n_layers)]


def with_head(config: Any, stored: Stored) -> Any:
    """Return the configuration of a decoder-only model without a head if the files have none.

    Such files, as those of LlamaModel and GPT2Model, lack the prefix of the names as well. If the output is
    the table of tokens, they have all that a head needs.

    Args:
        config: The configuration.
        stored: What the files hold.
    """
    if config.tied or any(name in (HEAD, OLD_HEAD) or name.startswith(PREFIXES) for name in stored.tensors):
        return config
    return config.replace(head=False)
