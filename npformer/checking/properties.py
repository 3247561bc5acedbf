"""Five properties that every correct backward pass has.

adjoint:              <dy, J v> = <Jᵀ dy, v> for another dy and a direction v of all tensors together.
backward is linear:   backward(a dy1 + b dy2) = a backward(dy1) + b backward(dy2).
gradients accumulate: running backward twice doubles the gradients of the parameters (+=, not =).
inputs not modified:  backward writes neither into dy nor into the cache.
hessian symmetry:     <w, H v> = <v, H w>, computed by a complex step through backward.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import CheckTarget, Gradients
from npformer.checking.derivative import METHOD_NAMES, STEP, derivative_along
from npformer.checking.report import CheckRow
from npformer.nn.show import named_arrays


def property_rows(
    name: str,
    target: CheckTarget,
    dy: Any,
    grads: Gradients,
    rng: Generator,
    method: str,
    tolerance: float,
    hessian: bool,
) -> list[CheckRow]:
    """Check each property and return one row for each.

    Args:
        name: The name of the checked object.
        target: Its forward and backward pass.
        dy: The gradient of the output that gave `grads`.
        grads: The gradients of all tensors by name.
        rng: The generator of directions.
        method: "complex" or "difference".
        tolerance: The largest error that passes.
        hessian: Check the symmetry of second derivatives as well.
    """
    rows = [
        ("adjoint", _adjoint(target, dy, rng, method), METHOD_NAMES[method], ""),
        ("backward is linear", _linearity(target, dy, grads, rng), "backward alone", ""),
        ("gradients accumulate", *_gradients_accumulate(target, dy, grads)),
        ("inputs not modified", *_inputs_not_modified(target, dy)),
    ]
    if hessian:
        rows.append(("hessian symmetry", _hessian(target, dy, rng), "complex step through backward", ""))
    return [CheckRow(name, tensor, error, how, tolerance, None, why) for tensor, error, how, why in rows]


def _adjoint(target: CheckTarget, dy: Any, rng: Generator, method: str) -> float:
    dy = dy * 0.7 if np.ndim(dy) == 0 else rng.standard_normal(dy.shape)
    # normal numbers, not ±1, so that equal errors in two entries cannot cancel
    directions = {name: rng.standard_normal(value.shape) for name, value in target.tensors.items()}
    numeric = float((dy * derivative_along(target, directions, method)).sum())
    grads = _fresh_vjp(target, dy)
    analytic = sum(float((grads[name] * v).sum()) for name, v in directions.items())
    return abs(numeric - analytic) / max(_length(grads.values()), abs(numeric), _TINY)


def _linearity(target: CheckTarget, dy: Any, grads: Gradients, rng: Generator) -> float:
    other = dy * 0.3 if np.ndim(dy) == 0 else rng.standard_normal(dy.shape)
    a, b = 0.6, -1.7
    together = _fresh_vjp(target, a * dy + b * other)
    second = _fresh_vjp(target, other)
    difference = [together[n] - a * grads[n] - b * second[n] for n in grads]
    return _length(difference) / max(_length(grads.values()) + _length(second.values()), _TINY)


def _gradients_accumulate(target: CheckTarget, dy: Any, grads: Gradients) -> tuple[float, str, str]:
    twice = _fresh_vjp(target, dy, times=2)
    worst, why = 0.0, ""
    for name in target.parameters:
        error = _length([twice[name] - 2 * grads[name]]) / max(_length([grads[name]]), _TINY)
        if error > worst:
            worst, why = error, f"{name}.grad: a second backward pass must add to it (+=, not =)"
    for name in target.real_inputs:
        error = _length([twice[name] - grads[name]]) / max(_length([grads[name]]), _TINY)
        if error > worst:
            worst, why = (
                error,
                f"the gradient of {name} changes when backward runs twice: it modifies the cache",
            )
    return worst, "backward twice", why if worst > 1e-12 else ""


def _inputs_not_modified(target: CheckTarget, dy: Any) -> tuple[float, str, str]:
    _, cache = target.run()
    kept, dy = dy, np.array(dy)
    before = [(name, np.array(array)) for name, array in named_arrays((cache,))]
    target.vjp(dy, cache)
    if not np.array_equal(kept, dy):
        return np.inf, "compared before and after", "backward writes into dy"
    for (name, old), (_, new) in zip(before, named_arrays((cache,)), strict=True):
        if not np.array_equal(old, new, equal_nan=old.dtype.kind in "fc"):
            return np.inf, "compared before and after", f"backward writes into the cache, at {name}"
    return 0.0, "compared before and after", ""


def _hessian(target: CheckTarget, dy: Any, rng: Generator) -> float:
    h = STEP["complex"]

    def hessian_times(directions: dict[str, Array]) -> Gradients:
        changes = {n: target.tensors[n] + 1j * h * v for n, v in directions.items()}
        _, cache = target.run(changes)
        return {n: np.imag(g) / h for n, g in target.vjp(dy, cache, changes).items()}

    v, w = ({name: rng.standard_normal(value.shape) for name, value in target.tensors.items()} for _ in "vw")
    hv, hw = hessian_times(v), hessian_times(w)
    there = sum(float((w[n] * hv[n]).sum()) for n in v)
    back = sum(float((v[n] * hw[n]).sum()) for n in v)
    return abs(there - back) / max(_length(hv.values()), _length(hw.values()), _TINY)


def _fresh_vjp(target: CheckTarget, dy: Any, times: int = 1) -> Gradients:
    """Run backward after its own forward pass, on a copy of dy, so that no property affects another."""
    _, cache = target.run()
    return target.vjp(np.array(dy), cache, times=times)


_TINY = float(np.finfo(float).tiny)


def _length(arrays: Iterable[Any]) -> float:
    return float(np.sqrt(sum(float((np.abs(np.asarray(a)) ** 2).sum()) for a in arrays)))
