"""The attention weights of a whole model, read from the forms in which libraries return them, and checked."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npformer.backend import Array, array_module, is_array, is_torch, to_numpy
from npformer.errors import UserError
from npformer.validation import require_index, short

# bfloat16 has 8 significant bits, so that rounding changes a weight, and so the sum of a row, by up to 0.4 %
ROUNDING = 0.005

RETURNS_NONE = (
    "Hugging Face's default attention returns no weights: load the model with "
    'attn_implementation="eager" and call it with output_attentions=True'
)


def layers_of(weights: Any, *, example: int | None = None, only: str | None = None) -> list[Array]:
    """Return the attention weights of each layer, read from any form in which models return them.

    Args:
        weights: A tuple or list with the weights of each layer, of shape (B, H, T, S), (H, T, S) or (T, S),
            as models of Hugging Face return it with output_attentions=True. Or one array: (L, B, H, T, S) for
            several layers, and (B, H, T, S), (H, T, S) or (T, S) for one. Or the dict of arrays that
            npformer.interop.torch.attention_maps returns, or the tuple of tuples of `generate`, with the
            layers of every step, whose queries are joined. The arrays belong to NumPy, CuPy or
            PyTorch, on any device, of any dtype of real numbers, and may require gradients.
        example: The index of the example in the batch. It may be left out if there is only one.
        only: A part of the names of the attentions to take from a dict. None takes all.

    Returns:
        L arrays (H, T, S). Those of CuPy stay on their device, all others are arrays of NumPy.

    Raises:
        UserError: If there are no weights, the shapes of the layers differ, or the example is not given.
    """
    named = _named_layers(weights if only is None else _with_names(weights, only))
    layers = [_one_example(layer, name, example) for name, layer in named]
    for (name, _), layer in zip(named, layers, strict=True):
        if layer.shape != layers[0].shape:
            raise UserError(
                f"{name} has shape {layer.shape} (heads, queries, keys) and {named[0][0]} has "
                f"{layers[0].shape}: give layers of equal shapes, or one layer alone"
                + (", chosen with only=, a part of their names" if isinstance(weights, Mapping) else "")
            )
    return layers


def _with_names(weights: Any, only: str) -> dict[str, Any]:
    """Return the weights of the attentions whose names have a part in them."""
    if not isinstance(weights, Mapping):
        raise UserError(f"only is {only!r}, and the weights have no names: leave it out, or give a dict")
    found = {name: layer for name, layer in weights.items() if only in name}
    if not found:
        raise UserError(f"no attention has {only!r} in its name: choose from {', '.join(weights)}")
    return found


def _named_layers(weights: Any) -> list[tuple[str, Any]]:
    """Return each layer with its name in error messages; a batch axis is still there."""
    if weights is None:
        raise UserError(f"weights is None: {RETURNS_NONE}")
    if isinstance(weights, str):
        raise UserError(
            f"weights is {short(weights)}: give arrays; of a folder, "
            "npformer.load(FOLDER).attention(TEXT).plot() draws them"
        )
    if isinstance(weights, Mapping | Sequence) and len(weights) == 0:
        raise UserError(f"weights is empty: {RETURNS_NONE}")
    if isinstance(weights, Mapping):
        several = any(np.ndim(layer) == 5 for layer in weights.values())  # layers of each kind of attention
        if len(weights) == 1 and several:
            return _named_layers(*weights.values())
        if all(map(_is_tensor, weights.values())) and not several:  # the weights of each call by its name
            return [(f"weights[{name!r}]", layer) for name, layer in weights.items()]
        raise UserError(_of_mapping(weights))
    if hasattr(weights, "named_modules"):
        raise UserError(
            f"weights is a {type(weights).__name__}, a model and no array: give the weights that it computes "
            "(for a module of PyTorch, npformer.interop.torch.attention_maps(module, **inputs))"
        )
    if isinstance(weights, Sequence) and any(part is None or _is_tensor(part) for part in weights):
        _refuse_missing(weights)
        return [(f"weights[{index}]", layer) for index, layer in enumerate(weights)]
    if isinstance(weights, Sequence) and any(_is_tensor(part[0]) for part in weights if _holds(part)):
        for step in weights:
            if not (isinstance(step, Sequence) and all(map(_is_tensor, step))):
                raise UserError(
                    f"weights is nested, and {short(step)} is no step: give each step as a tuple of layers"
                )
        if len({len(step) for step in weights}) > 1:
            raise UserError(
                "weights is nested, and its steps have different numbers of layers: give one step"
            )
        return [(f"weights[:][{i}]", _joined(steps)) for i, steps in enumerate(zip(*weights, strict=True))]
    if not _is_tensor(weights):
        weights = _from_lists(weights)
    if weights.ndim == 5:
        if not len(weights):
            raise UserError(f"weights is empty: {RETURNS_NONE}")
        return [(f"weights[{index}]", weights[index]) for index in range(len(weights))]
    return [("weights", weights)]


def _joined(steps: Sequence[Any]) -> Array:
    """Return the weights of a layer in all steps of `generate` as one array, in the order of the queries.

    Args:
        steps: The weights of each step: of the prompt, (B, H, T, S), and of each new token, (B, H, 1, S + n)
            after n steps, or (B, H, 1, S) for cross-attention; without a cache, those of all tokens.

    Raises:
        UserError: If the shapes are others, as with a cache that forgets keys, or with a beam.
    """
    first, shapes = steps[0], [tuple(step.shape) for step in steps]
    batch, n_heads, length, n_keys = shapes[0] if len(shapes[0]) == 4 else (0,) * 4
    for grows in (0, 1) if batch else ():
        n_last = n_keys + grows * (len(steps) - 1)
        later = [(batch, n_heads, 1, n_keys + grows * n) for n in range(1, len(steps))]
        if shapes[1:] == [(*shape[:2], length + n, shape[3]) for n, shape in enumerate(later, 1)]:
            return to_numpy(steps[-1])  # without a cache, the last step has all queries
        if shapes[1:] == later:
            joined = np.zeros((batch, n_heads, length + len(later), n_last), to_numpy(first).dtype)
            for n, step in enumerate(map(to_numpy, steps)):
                joined[:, :, slice(length) if not n else [length + n - 1], : step.shape[-1]] = step
            return joined
    raise UserError(
        "weights is nested, as generate() returns it, and its steps do not follow each other (their shapes "
        f"begin with {shapes[:2]}): give those of one step, such as weights[0]"
    )


def _is_tensor(value: Any) -> bool:
    """Return whether a value is an array or a tensor of any library, and not a single number."""
    is_like = hasattr(value, "__array__") and hasattr(value, "shape") and not isinstance(value, np.generic)
    return is_array(value) or is_torch(value) or is_like


def _holds(part: Any) -> bool:
    return isinstance(part, Sequence) and not isinstance(part, str) and len(part) > 0


def _of_mapping(weights: Mapping[Any, Any]) -> str:
    """Return the sentence for what a model returns as a whole, a mapping with the weights as one entry."""
    kind = type(weights).__name__
    named = {name: value for name, value in weights.items() if "attention" in str(name)}
    names = [name for name, value in named.items() if value is not None and len(value)]
    if not names and hasattr(weights, "to_tuple"):  # a method of Hugging Face's classes
        return f"weights is a {kind} without attentions: {RETURNS_NONE}"
    names = names or list(weights)
    listed = ", ".join(map(repr, names))
    return f"weights is a {kind} with {listed}: give one entry, such as weights[{names[0]!r}]"


def _refuse_missing(weights: Sequence[Any]) -> None:
    for index, layer in enumerate(weights):
        if layer is None:
            raise UserError(f"weights[{index}] is None: {RETURNS_NONE}")
        if not _is_tensor(layer):
            raise UserError(f"weights[{index}] is a {type(layer).__name__}: give an array for each layer")


def _from_lists(weights: Any) -> Array:
    """Return nested lists of numbers as an array."""
    try:
        return np.asarray(weights)
    except ValueError:
        raise UserError("weights has rows of different lengths: give an array") from None


def _one_example(layer: Any, name: str, example: int | None) -> Array:
    """Return the weights of one example. Shapes: (B, H, T, S), (H, T, S) or (T, S) -> (H, T, S)."""
    shape = tuple(layer.shape)
    if len(shape) not in (2, 3, 4) or 0 in shape:
        raise UserError(
            f"{name} has shape {shape}: give the batch, the heads, the queries and the keys, "
            "(B, H, T, S), none of them empty"
        )
    batch = shape[0] if len(shape) == 4 else 1
    if example is None and batch > 1:
        raise UserError(
            f"{name} has shape {shape}, a batch of {batch} examples: choose one, such as example=0 "
            "(if the first axis counts layers, give weights[:, None])"
        )
    index = 0 if example is None else require_index("example", example, batch)
    part = layer[index] if len(shape) == 4 else layer
    part = part[None] if len(shape) == 2 else part
    part = part if is_array(part) else to_numpy(part)
    if part.dtype.kind not in "biuf":
        raise UserError(f"{name} holds {part.dtype}: give real numbers")
    return part if part.dtype.kind == "f" else part.astype(np.float64)


def require_weights(layer: Array, name: str, *, normalized: bool = True) -> None:
    """Check that an array holds attention weights.

    A row that is 0 throughout is that of a query that may attend to no key.

    Args:
        layer: The weights, (H, T, S).
        name: The name of the array in error messages.
        normalized: Whether every row must add up to 1, up to the rounding of bfloat16.

    Raises:
        UserError: If a weight is NaN, infinite or negative, or a row does not add up to 1.
    """
    xp = array_module(layer)
    sums = layer.sum(-1, dtype=np.float64)  # (H, T), NaN or infinite if one of its weights is
    if not bool(xp.isfinite(sums).all()) or bool((layer < 0).any()):
        wrong = xp.argwhere(~(xp.isfinite(layer) & (layer >= 0)))
        index = [int(i) for i in wrong[0]]
        raise UserError(
            f"{name}{index} is {float(layer[tuple(index)]):.3g}, at [head, query, key]: a weight is finite "
            "and not negative, so give the weights after the softmax, or a mask of what is not attended to"
        )
    if not normalized:
        return
    wrong = xp.argwhere((abs(sums - 1) > ROUNDING) & (sums != 0))
    if len(wrong):
        head, query = (int(i) for i in wrong[0])
        # attention sinks take a share of every row, which is not among the weights (GPT-OSS)
        sinks = (
            " (a model with attention sinks, such as GPT-OSS, has such rows)"
            if bool((sums < 1).all())
            else ""
        )
        raise UserError(
            f"{name}[{head}, {query}] adds up to {float(sums[head, query]):.3g} and not to 1, at "
            "[head, query]: give the weights after the softmax and without dropout (model.eval()), or "
            f"normalized=False{sinks}"
        )
