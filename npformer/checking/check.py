"""gradcheck: compare a backward pass with its forward pass, tensor by tensor.

For a random dy, the backward pass computes the gradient g of <dy, y> with respect to every tensor. For a
random direction v of entries ±1, the derivative of <dy, y> along v is computed from the forward pass. It must
equal <g, v>. One evaluation therefore checks all entries of a tensor at once. If the check fails, bisection
finds the first wrong entry.

The error is |<g, v> - derivative| divided by the Euclidean norm of g, which is the typical size of <g, v>. If
g is 0 in exact arithmetic (as for the bias of the keys under a softmax), both sides are rounding errors. Then
the error is divided by a thousandth of the largest norm of a gradient.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import METHOD_NAMES, derivative, signs
from npformer.checking.diagnosis import diagnose
from npformer.checking.properties import property_rows
from npformer.checking.report import CheckRow, Report
from npformer.errors import UserError, did_you_mean

TOLERANCE = {"complex": 1e-11, "difference": 1e-6}
# the arguments of directional_error that follow v
_Context: TypeAlias = tuple[CheckTarget, str, Array, Any, str, float]


def gradcheck(
    thing: Any,
    *inputs: Any,
    method: str = "complex",
    tolerance: float | None = None,
    seed: int = 0,
    name: str | None = None,
    randomize: bool = True,
    hessian: bool = False,
    **settings: Any,
) -> Report:
    """Check the backward pass of a layer, or of a pair of functions (f, f_backward).

    Every gradient is compared with a derivative of the forward pass along a random direction:

        <g, v>  =  d/dh <dy, forward(x + h v)>   at h = 0

    Four properties that hold for every backward pass are checked as well: it is the adjoint of the
    derivative, it is linear in dy, it adds to the gradients of the parameters, and it modifies neither dy nor
    the cache. A layer that stores activations in its attributes instead of the cache fails.

    Example:
        >>> import numpy as np, npformer
        >>> rng = np.random.default_rng(0)
        >>> layer = npformer.nn.Linear(4, 3, rng=rng)
        >>> npformer.gradcheck(layer, rng.standard_normal((2, 4))).ok
        True

    Args:
        thing: An object with forward(*inputs, **settings) -> (y, cache) and backward(dy, cache) -> the
            gradients of the real inputs in their order, or a tuple of two such functions. backward adds the
            gradients of parameters to their .grad.
        inputs: The arguments of forward. Arrays of floats, of any shape, are checked. Token ids, masks and
            other arguments are passed on.
        method: "complex" is exact to rounding, and the forward pass must accept complex numbers. "difference"
            uses central differences, which are correct to about nine digits.
        tolerance: The largest error that passes. The default is 1e-11 for "complex" and 1e-6 for
            "difference".
        seed: The seed of the random directions.
        name: The name in the report. The default is the name of the class or of the function.
        randomize: Start gains and biases at random values, since 1 and 0 hide mistakes.
        hessian: Also check that second derivatives are symmetric. backward must accept complex numbers.
        settings: Keyword arguments of forward. rng=7 seeds a new generator for each evaluation.

    Returns:
        A Report with .ok, .rows, .failures and .worst. Its string is a table with one row for each tensor and
        each property, and with a diagnosis for each incorrect gradient.

    Raises:
        UserError: If there is no such method, if there is nothing to check, or if forward or backward does
            not follow the protocol above.

    Source: Squire and Trapp 1998 (complex step).
    """
    if method not in METHOD_NAMES:
        raise UserError(f"unknown method {method!r}: {did_you_mean(method, METHOD_NAMES)}")
    rng = np.random.default_rng(seed)
    target = CheckTarget(thing, inputs, settings, randomize=randomize, rng=rng)
    tolerance = TOLERANCE[method] if tolerance is None else tolerance
    name = name or (thing[0].__name__ if isinstance(thing, tuple) else type(thing).__name__)

    y, cache = target.run()
    dy = _cotangent(y, rng)
    _run_with_other_inputs(target)  # this overwrites activations that a layer stores in its attributes
    grads = target.vjp(dy, cache)
    floor = 1e-3 * max([_length(g) for g in grads.values()] + [np.finfo(float).tiny])
    report = Report(name)
    for tensor, value in target.tensors.items():
        context = (target, tensor, grads[tensor], dy, method, floor)
        report.rows.append(_check_tensor(name, value, context, tolerance, rng))
    report.rows += property_rows(name, target, dy, grads, rng, method, tolerance, hessian)
    return report


def _check_tensor(name: str, value: Array, context: _Context, tolerance: float, rng: Generator) -> CheckRow:
    """Check the gradient of one tensor."""
    target, tensor, g, dy, method, _ = context
    how = METHOD_NAMES[method]
    if np.shape(g) != value.shape:
        why = f"the gradient has shape {np.shape(g)} and the tensor {value.shape}: must an axis be summed?"
        return CheckRow(name, tensor, np.inf, how, tolerance, None, why)
    v = signs(rng, value.shape)
    error = directional_error(v, *context)
    if error <= tolerance:
        return CheckRow(name, tensor, error, how, tolerance)
    # With entries ±1, errors might cancel in a part of the tensor, so the entries get different sizes. "not
    # <=" stands in place of ">", because an error of NaN is a failure as well.
    uneven = v * rng.uniform(0.5, 1.5, v.shape)
    entry = first_wrong_entry(lambda part: not directional_error(part, *context) <= tolerance, uneven)
    return CheckRow(
        name, tensor, error, how, tolerance, entry, diagnose(target, tensor, g, dy, method, tolerance)
    )


def directional_error(
    v: Array, target: CheckTarget, tensor: str, g: Array, dy: Any, method: str, floor: float
) -> float:
    """Return |<g, v> - derivative of <dy, y> along v|, divided by the norm of g or by the floor.

    Args:
        v: The direction, of the shape of the tensor.
        target: The forward and backward pass.
        tensor: The name of the tensor.
        g: Its gradient, of the same shape.
        dy: The gradient of the output.
        method: "complex" or "difference".
        floor: The smallest number by which the difference is divided.
    """
    numeric = float((dy * derivative(target, tensor, v, method)).sum())
    analytic = float((g * v).sum())
    return abs(numeric - analytic) / max(_length(g), abs(numeric), floor)


def _length(g: Any) -> float:
    return float(np.sqrt((np.asarray(g, np.float64) ** 2).sum()))


def _cotangent(y: Any, rng: Generator) -> Any:
    """Return a random dy for y: an array, or a Python float for a scalar such as a loss."""
    if np.ndim(y) == 0:
        return float(rng.uniform(0.5, 1.5))
    return rng.standard_normal(y.shape)


def _run_with_other_inputs(target: CheckTarget) -> None:
    """Run forward with other inputs, so that a layer that stores activations in attributes fails."""
    target.run({name: 0.5 - target.tensors[name] for name in target.real_inputs})


def first_wrong_entry(is_wrong: Callable[[Array], bool], v: Array) -> tuple[int, ...]:
    """Return the index of the first entry with a wrong gradient.

    Each step halves the number of entries that are left, so a tensor of a million entries takes twenty
    evaluations.

    Args:
        is_wrong: A function of a direction: True if the numeric and the analytic derivative along it differ.
        v: A direction along which they differ, of the shape of the tensor.
    """
    start, end = 0, v.size
    while end - start > 1:
        middle = (start + end) // 2
        if is_wrong(_only(v, start, middle)):
            end = middle
        else:
            start = middle
    return tuple(int(i) for i in np.unravel_index(start, v.shape))


def _only(v: Array, start: int, end: int) -> Array:
    """Return the direction v with 0 at all entries but start .. end - 1."""
    part = np.zeros(v.size)
    part[start:end] = v.reshape(-1)[start:end]
    return part.reshape(v.shape)
