"""Diagnosis of a wrong gradient: common mistakes, each with its pattern.

The numeric gradient is computed separately for each entry (of a large tensor, for some) and compared with the
analytic gradient. A pattern recognizes one kind of difference, such as a factor, a transposition or a missing
term. The patterns are in the modules factors, terms and places. Each pattern takes a DiagnosisContext and
returns a sentence, or "" if it does not match.
"""

import math
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import derivative
from npformer.checking.diagnosis_context import DiagnosisContext, same
from npformer.checking.factors import factor, factor_array, factor_by_row, nothing
from npformer.checking.places import (
    every_row_alike,
    on_a_diagonal,
    one_a_row,
    opposite,
    other_tensor,
    reordered,
    reordered_along,
    repeated_rows,
    shifted,
    some_entries,
    transposed,
)
from npformer.checking.terms import (
    along_array,
    along_axis,
    another_array,
    only_a_factor,
    residual,
    two_terms,
)
from npformer.nn.show import named_arrays

ENTRIES = 512  # the largest number of entries whose derivatives are computed one by one

# ordered from the most specific to the most general pattern: the first one that matches gives the diagnosis
SINGLE = (nothing, factor)
WHOLE = (
    other_tensor,
    transposed,
    opposite,
    residual,
    factor_array,
    along_axis,
    along_array,
    two_terms,
    factor_by_row,
    repeated_rows,
    one_a_row,
    on_a_diagonal,
    shifted,
    reordered_along,
    reordered,
    another_array,
    some_entries,
    only_a_factor,
    every_row_alike,
)
VALUES = (factor, transposed, opposite, on_a_diagonal, shifted, reordered_along, reordered)
UNKNOWN = "no known pattern matches: compare the code with the derivation"


def describe(context: DiagnosisContext) -> str:
    """Return the sentence of the first pattern that matches a whole tensor.

    The patterns of terms and paths of a backward pass apply to gradients only.
    """
    patterns = (*SINGLE, *WHOLE) if context.is_gradient else VALUES
    return next((clue for find in patterns if (clue := find(context))), UNKNOWN)


def diagnose(target: CheckTarget, tensor: str, g: Array, dy: Any, method: str, tolerance: float) -> str:
    """Return a sentence about the difference between the gradient g of a tensor and the correct one.

    Args:
        target: The forward and backward pass.
        tensor: The name of the tensor.
        g: Its gradient from backward.
        dy: The gradient of the output.
        method: "complex" or "difference".
        tolerance: The largest error that passes.
    """
    if not np.isfinite(g).all():
        return "the gradient contains NaN or infinity"
    value = target.tensors[tensor]
    index = _entries_to_check(value.size)
    numeric = _numeric_gradient(target, tensor, dy, method, index)
    analytic = np.asarray(g, np.float64).reshape(-1)[index]
    rtol = max(tolerance, 1e-9) if method == "complex" else 1e-4
    if method == "complex" and same(numeric, analytic, 1e-5):
        return "it is correct to about seven digits: a part of it was computed in float32"
    if method == "complex" and _passes_differences(target, tensor, dy, analytic, index):
        return (
            "central differences agree with the gradient, so the forward pass loses the imaginary part "
            "(does it use abs, max, a comparison or a norm?): check with method='difference'"
        )
    numbers = named_numbers(target, dy)
    part = DiagnosisContext(numeric, analytic, numbers=numbers, rtol=rtol)
    clue = nothing(part) or factor(part) or _state_on_layer(target, tensor, dy, numeric, index, rtol)
    if clue:
        return clue
    if len(index) < value.size:
        return some_entries(part) or UNKNOWN
    _, cache = target.run()
    arrays = known_arrays(target, cache)
    shape = value.shape
    return describe(
        DiagnosisContext(numeric.reshape(shape), analytic.reshape(shape), dy, arrays, {}, numbers, rtol)
    )


def known_arrays(target: CheckTarget, cache: Any) -> dict[str, Array]:
    """Return the inputs and the arrays of the cache by name."""
    inputs = {name: x for name, x in target.inputs.items() if is_array(x)}
    if is_array(cache):
        return inputs | {"the cache": cache}
    return inputs | {f"cache.{name.partition('.')[2]}": array for name, array in named_arrays((cache,))}


def named_numbers(target: CheckTarget, dy: Any) -> list[tuple[float, str]]:
    """Return numbers that may explain a factor: 2, 3, settings, lengths of axes, numbers of positions."""
    named: list[tuple[float, str]] = [(2, "2"), (3, "3")]
    for name, value in target.settings.items():
        if isinstance(value, float) and 0 < value < 1:
            named += [(value, name), (1 - value, f"(1 - {name})")]
    for name, array in [*target.inputs.items(), *target.tensors.items(), ("y", dy)]:
        for axis, length in enumerate(np.shape(array)):
            if length > 1:
                named.append((length, f"{length} (axis {axis} of {name})"))
    sizes = {math.prod(np.shape(a)[:-1]) for a in [*target.inputs.values(), dy] if np.ndim(a) > 1}
    named += [(n, f"{n} (all positions)") for n in sorted(sizes) if n > 1]
    ids = {name: a for name, a in target.inputs.items() if is_array(a) and a.dtype.kind == "i"}
    named += [(a.size, f"{a.size} (all {name})") for name, a in ids.items() if a.size > 1]
    return named + [
        (n, f"{n} ({name} that are not 0)") for name, a in ids.items() if (n := int((a != 0).sum())) > 1
    ]


def _entries_to_check(size: int) -> Array:
    """Return all entries of a small tensor, and evenly spaced ones of a large tensor."""
    return np.unique(np.linspace(0, size - 1, min(size, ENTRIES)).astype(int))


def _numeric_gradient(target: CheckTarget, tensor: str, dy: Any, method: str, index: Array) -> Array:
    """Return the derivative of <dy, y> by each of these entries. Shapes: index (n,) -> (n,)."""
    value = target.tensors[tensor]
    numeric = np.empty(len(index))
    for i, entry in enumerate(index):
        v = np.zeros(value.size)
        v[entry] = 1
        numeric[i] = (dy * derivative(target, tensor, v.reshape(value.shape), method)).sum()
    return numeric


def _passes_differences(target: CheckTarget, tensor: str, dy: Any, analytic: Array, index: Array) -> bool:
    """Return whether central differences agree with the gradient where the complex step does not."""
    numeric = _numeric_gradient(target, tensor, dy, "difference", index)
    return same(numeric, analytic, 1e-5)


def _state_on_layer(
    target: CheckTarget, tensor: str, dy: Any, numeric: Array, index: Array, rtol: float
) -> str:
    """Recognize activations in attributes: without a second forward pass the gradient is correct."""
    _, cache = target.run()
    again = np.asarray(target.vjp(dy, cache)[tensor], np.float64).reshape(-1)[index]
    if same(numeric, again, rtol):
        return (
            "it is correct unless forward runs a second time before backward: the layer stores activations "
            "in attributes, and they belong in the cache"
        )
    return ""
