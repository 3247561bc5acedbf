"""Diagnosis of a wrong gradient: the sentence of the first pattern that matches.

The numeric gradient is computed separately for each entry (of a large tensor, for some) and compared with the
analytic gradient. The patterns are those of npformer/mistakes/patterns.py.
"""

import contextlib
import math
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import derivative_along
from npformer.checking.foreign.layer import Graph
from npformer.checking.trace import trace
from npformer.checking.trees import copy_tree, inner
from npformer.language import GRADER, later, phrase, say
from npformer.mistakes.patterns import (
    IN_FLOAT32,
    UNKNOWN,
    Count,
    DiagnosisContext,
    describe,
    factor,
    has_few_digits,
    nothing,
    same,
    some_entries,
)
from npformer.nn.show import named_arrays

SMALL_TERM = later(
    "it is correct to about seven digits: a small term is missing or wrong, or a constant is in float32"
)
ENTRIES = 512  # the largest number of entries whose derivatives are computed one by one


class NumericGradients:
    """The correct gradients of the tensors, each of which is computed once.

    Args:
        target: The forward and backward pass.
        dy: The gradient of the output.
        methods: "complex" or "difference", for each tensor.
    """

    def __init__(self, target: CheckTarget, dy: Any, methods: dict[str, str]) -> None:
        self.target, self.dy, self.methods = target, dy, methods
        self._known: dict[str, Array] = {}

    def of(self, tensor: str) -> Array:
        """Return the gradient at the entries that `_entries_to_check` chooses, of shape (n,)."""
        if tensor not in self._known:
            index = _entries_to_check(self.target.tensors[tensor].size)
            method = self.methods[tensor]
            self._known[tensor] = numeric_gradient(self.target, tensor, self.dy, method, index)
        return self._known[tensor]


def diagnose(correct: NumericGradients, tensor: str, g: Array, tolerance: float) -> str:
    """Return a sentence about the difference between the gradient g of a tensor and the correct one.

    Args:
        correct: The correct gradients.
        tensor: The name of the tensor.
        g: Its gradient from backward.
        tolerance: The largest error that passes.
    """
    target, dy, method = correct.target, correct.dy, correct.methods[tensor]
    one_output = None if isinstance(dy, (dict, list, tuple)) else dy
    if not np.isfinite(g).all():
        return say("the gradient contains NaN or infinity")
    if target.foreign and tensor in target.foreign.reasons:
        return target.foreign.reasons[tensor]
    value = target.tensors[tensor]
    index = _entries_to_check(value.size)
    numeric = correct.of(tensor)
    analytic = np.asarray(g, np.float64).reshape(-1)[index]
    rtol = max(tolerance, 1e-9 if method == "complex" else 1e-4)
    if tolerance < 1e-8 and has_few_digits(numeric, analytic):
        return phrase(
            IN_FLOAT32 if _is_rounded(correct, tensor, analytic - numeric, index) else SMALL_TERM, GRADER
        )
    numbers = named_numbers(target, one_output)
    part = DiagnosisContext(numeric, analytic, numbers=numbers, rtol=rtol)
    clue = nothing(part) or factor(part) or _state_on_layer(target, tensor, dy, numeric, index, rtol)
    if clue:
        return clue
    if len(index) < value.size:
        return some_entries(part) or phrase(UNKNOWN, GRADER)
    _, cache = target.run()
    arrays = known_arrays(target, cache)
    shape = value.shape
    return describe(
        DiagnosisContext(
            numeric.reshape(shape),
            analytic.reshape(shape),
            one_output,
            arrays,
            _gradients_of_same_shape(correct, tensor),
            numbers=numbers,
            rtol=rtol,
            operands=_operands(target, dy),
        )
    )


def _is_rounded(correct: NumericGradients, tensor: str, error: Array, index: Array) -> bool:
    """Return whether a small error is that of numbers in float32.

    At a point nearby, numbers are rounded differently, and a missing term is nearly the same. The error of a
    constant factor in float32 is a multiple of the gradient.
    """
    target, numeric = correct.target, correct.of(tensor)
    c = float(error @ numeric) / float(numeric @ numeric)
    if same(error, c * numeric, 1e-2):
        return True
    rng = np.random.default_rng(0)
    near = {n: value * (1 + 1e-4 * rng.standard_normal(value.shape)) for n, value in target.tensors.items()}
    with target.moved_to(near), contextlib.suppress(Exception):  # forward may refuse other inputs
        there = numeric_gradient(target, tensor, correct.dy, correct.methods[tensor], index)
        g = target.vjp(copy_tree(correct.dy), target.run()[1])[tensor]
        return not same(error, np.asarray(g, np.float64).reshape(-1)[index] - there, 0.1)
    return True


def _operands(target: CheckTarget, dy: Any) -> dict[str, Array]:
    """Return the parameters and the variables of the backward pass by name."""
    _, cache = target.run()
    local = trace(lambda: target.vjp(copy_tree(dy), cache), target.files()).arrays
    return {name: array for name, array in (target.tensors | local).items() if array.size > 1}


def known_arrays(target: CheckTarget, cache: Any) -> dict[str, Array]:
    """Return the inputs and the arrays of the cache by name."""
    inputs = {name: x for name, x in target.inputs.items() if is_array(x)}
    if isinstance(cache, Graph):
        return inputs | cache
    if is_array(cache):
        return inputs | {say("the cache"): cache}
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
                named.append(
                    (length, say("{length} (axis {axis} of {name})", length=length, axis=axis, name=name))
                )
    sizes = {math.prod(np.shape(a)[:-1]) for a in [*target.inputs.values(), dy] if np.ndim(a) > 1}
    named += [(n, Count(say("{n} (all positions)", n=n))) for n in sorted(sizes) if n > 1]
    ids = {name: a for name, a in target.inputs.items() if is_array(a) and a.dtype.kind == "i"}
    named += [
        (a.size, Count(say("{n} (all {name})", n=a.size, name=name))) for name, a in ids.items() if a.size > 1
    ]
    return named + [
        (n, Count(say("{n} ({name} that are not 0)", n=n, name=name)))
        for name, a in ids.items()
        if (n := int((a != 0).sum())) > 1
    ]


def _gradients_of_same_shape(correct: NumericGradients, tensor: str) -> dict[str, Array]:
    """Return the right gradients of the other tensors of the same shape: backward may exchange two."""
    tensors = correct.target.tensors
    shape = tensors[tensor].shape
    return {
        say("the gradient of {name}", name=name): correct.of(name).reshape(shape)
        for name, value in tensors.items()
        if name != tensor and value.shape == shape
    }


def _entries_to_check(size: int) -> Array:
    """Return all entries of a small tensor, and evenly spaced ones of a large tensor."""
    return np.unique(np.linspace(0, size - 1, min(size, ENTRIES)).astype(int))


def numeric_gradient(target: CheckTarget, tensor: str, dy: Any, method: str, index: Array) -> Array:
    """Return the derivative of <dy, y> by some entries of a tensor.

    Args:
        target: The forward pass.
        tensor: The name of the tensor.
        dy: The gradient of the output.
        method: "complex" or "difference".
        index: The indices of the entries in the flat tensor, of shape (n,).

    Returns:
        An array of shape (n,).
    """
    value = target.tensors[tensor]
    numeric = np.empty(len(index))
    for i, entry in enumerate(index):
        v = np.zeros(value.size)
        v[entry] = 1
        numeric[i] = inner(dy, derivative_along(target, {tensor: v.reshape(value.shape)}, method))
    return numeric


def _state_on_layer(
    target: CheckTarget, tensor: str, dy: Any, numeric: Array, index: Array, rtol: float
) -> str:
    """Recognize activations in attributes: without a second forward pass the gradient is correct."""
    _, cache = target.run()
    again = np.asarray(target.vjp(dy, cache)[tensor], np.float64).reshape(-1)[index]
    if same(numeric, again, rtol):
        return say(
            "it is correct unless forward runs a second time before backward: the layer stores activations "
            "in attributes, and they belong in the cache"
        )
    return ""
