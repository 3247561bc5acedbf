"""Rows of layers, names of activations and the head, which several families have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from npformer.interop.families.family import Stored, WeightRow

HEAD = "lm_head.weight"  # the matrix of the output, if it is not the table of tokens
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

# else transformers takes ids that are ordinary tokens here
NO_IDS = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))


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
        parts: The name within theirs of each part of ours: a norm, a linear map, or an attention, which has
            the four names of queries, keys, values and output.
        shape: The shape of the layer.
    """
    d, f, bias = shape.d_model, shape.d_ff, shape.bias
    q = d if shape.queries is None else shape.queries
    k = q if shape.keys is None else shape.keys
    qkv_bias = bias if shape.qkv_bias is None else shape.qkv_bias
    sizes = {"output": (q, d), "inner": (d, f), "gate": (d, f), "value": (d, f), "outer": (f, d)}
    for part, name in parts.items():
        if not isinstance(name, str):  # an attention
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
