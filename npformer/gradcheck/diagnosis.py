"""What a wrong gradient looks like: the mistakes that are made again and again, each with its sign.

The numeric gradient is made entry by entry (of large tensors a part), and compared with the analytic
one: is it the same up to a factor, transposed, zero, without its mean ...? The clues stand in files of
their own (factors, terms, places); each looks at the scene and returns a sentence, or "".
"""

import math

import numpy as np

from npformer.backend import is_array
from npformer.gradcheck.derivative import derivative
from npformer.gradcheck.factors import factor, factor_array, factor_by_row, nothing
from npformer.gradcheck.places import (
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
from npformer.gradcheck.scene import Scene, same
from npformer.gradcheck.terms import (
    along_array,
    along_axis,
    another_array,
    only_a_factor,
    residual,
    two_terms,
)
from npformer.show import named_arrays

ENTRIES = 512  # as many entries of a tensor as are looked at one by one

# from the most particular to the most general: the first that says something is believed
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
UNKNOWN = "no pattern that is known: compare it with the derivation"


def describe(scene):
    """The first clue about a whole tensor."""
    return next((clue for find in (*SINGLE, *WHOLE) if (clue := find(scene))), UNKNOWN)


def diagnose(subject, tensor, g, dy, method, tolerance):
    """A sentence that says what the gradient g of a tensor looks like, beside the right one."""
    if not np.isfinite(g).all():
        return "the gradient holds NaN or infinity"
    value = subject.tensors[tensor]
    index = _entries_to_look_at(value.size)
    numeric = _numeric_gradient(subject, tensor, dy, method, index)
    analytic = np.asarray(g, np.float64).reshape(-1)[index]
    loose = max(tolerance, 1e-9) if method == "complex" else 1e-4
    if method == "complex" and same(numeric, analytic, 1e-5):
        return "it is right to about seven digits: part of it was computed in float32"
    if method == "complex" and _passes_differences(subject, tensor, dy, analytic, index):
        return (
            "central differences agree with the gradient: the forward pass does not let complex numbers "
            "through (abs, max, comparisons or a norm?); check with method='difference'"
        )
    numbers = named_numbers(subject, dy)
    part = Scene(numeric, analytic, numbers=numbers, loose=loose)
    clue = nothing(part) or factor(part) or _state_on_layer(subject, tensor, dy, numeric, index, loose)
    if clue:
        return clue
    if len(index) < value.size:
        return some_entries(part) or UNKNOWN
    _, cache = subject.run()
    arrays = known_arrays(subject, cache)
    shape = value.shape
    return describe(Scene(numeric.reshape(shape), analytic.reshape(shape), dy, arrays, {}, numbers, loose))


def known_arrays(subject, cache):
    """The inputs and what the cache holds, by name."""
    inputs = {name: x for name, x in subject.inputs.items() if is_array(x)}
    if is_array(cache):
        return inputs | {"the cache": cache}
    return inputs | {f"cache.{name.partition('.')[2]}": array for name, array in named_arrays((cache,))}


def named_numbers(subject, dy):
    """Numbers that a factor may come from: 2, settings, lengths of axes, and how many positions there are."""
    named: list[tuple[float, str]] = [(2, "2"), (3, "3")]
    for name, value in subject.settings.items():
        if isinstance(value, float) and 0 < value < 1:
            named += [(value, name), (1 - value, f"(1 - {name})")]
    for name, array in [*subject.inputs.items(), *subject.tensors.items(), ("y", dy)]:
        for axis, length in enumerate(np.shape(array)):
            if length > 1:
                named.append((length, f"{length} (axis {axis} of {name})"))
    sizes = {math.prod(np.shape(a)[:-1]) for a in [*subject.inputs.values(), dy] if np.ndim(a) > 1}
    named += [(n, f"{n} (all positions)") for n in sorted(sizes) if n > 1]
    ids = {name: a for name, a in subject.inputs.items() if is_array(a) and a.dtype.kind == "i"}
    named += [(a.size, f"{a.size} (all {name})") for name, a in ids.items() if a.size > 1]
    return named + [
        (n, f"{n} ({name} that are not 0)") for name, a in ids.items() if (n := int((a != 0).sum())) > 1
    ]


def _entries_to_look_at(size):
    """All entries of a small tensor, evenly spaced ones of a large one."""
    return np.unique(np.linspace(0, size - 1, min(size, ENTRIES)).astype(int))


def _numeric_gradient(subject, tensor, dy, method, index):
    """The derivative of <dy, y> by each of these entries. Shapes: index (n,) -> (n,)."""
    value = subject.tensors[tensor]
    numeric = np.empty(len(index))
    for i, entry in enumerate(index):
        v = np.zeros(value.size)
        v[entry] = 1
        numeric[i] = (dy * derivative(subject, tensor, v.reshape(value.shape), method)).sum()
    return numeric


def _passes_differences(subject, tensor, dy, analytic, index):
    """Whether central differences find the gradient right where the complex step does not."""
    numeric = _numeric_gradient(subject, tensor, dy, "difference", index)
    return same(numeric, analytic, 1e-5)


def _state_on_layer(subject, tensor, dy, numeric, index, loose):
    """Right after one forward pass, wrong after another one: activations are kept on the layer."""
    _, cache = subject.run()
    again = np.asarray(subject.pull(dy, cache)[tensor], np.float64).reshape(-1)[index]
    if same(numeric, again, loose):
        return (
            "it is right until forward runs a second time before backward: activations are kept on the "
            "layer, and belong in the cache"
        )
    return ""
