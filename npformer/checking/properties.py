"""Properties that every correct backward pass has.

adjoint:              <dy, J v> = <Jᵀ dy, v> for another dy and a direction v of all tensors together.
backward is linear:   backward(a dy1 + b dy2) = a backward(dy1) + b backward(dy2).
gradients accumulate: running backward twice doubles the gradients of the parameters (+=, not =).
inputs not modified:  backward writes neither into dy nor into the cache.
hessian symmetry:     <w, H v> = <v, H w>, computed by a complex step through backward.
"""

from typing import Any

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import TOLERANCE, CheckTarget, Gradients
from npformer.checking.derivative import METHOD_NAMES, STEP, step_along
from npformer.checking.draw import LARGE, TIMES, Draw, points_nearby
from npformer.checking.report import UNDECIDED, CheckRow
from npformer.checking.stairs import misled_by_stairs
from npformer.checking.trees import copy_tree, draw_like, leaves, map_tree, norm
from npformer.nn.show import named_arrays

ACCUMULATE = "gradients accumulate"
KEEPS_NUMBERS = "it keeps numbers of the last run (is a buffer not cleared?)"


def property_rows(
    name: str,
    draw: Draw,
    second: dict[str, Array],
    rng: Generator,
) -> list[CheckRow]:
    """Check each property and return one row for each.

    Args:
        name: The name of the checked object.
        draw: A dy with its gradients.
        second: Another point, at which the adjoint is checked.
        rng: The generator of directions.
    """
    target, options = draw.target, draw.options
    method = "difference" if "difference" in draw.methods.values() else options.method
    how, tolerance = METHOD_NAMES[method], max(draw.tolerance(tensor) for tensor in draw.methods)
    # linearity needs no derivative, so that a part in float32 shows even if the derivatives are differences
    exact = TOLERANCE["complex"] if target.foreign and not target.foreign.is_rounded else tolerance
    error, passes, undecided = _adjoint(draw, second, rng, tolerance)
    rows = [
        ("adjoint", error, how, UNDECIDED if undecided else ""),
        ("backward is linear", _linearity(draw, rng, exact), "backward alone", ""),
        (ACCUMULATE, *_gradients_accumulate(draw, rng)),
        ("inputs not modified", *_inputs_not_modified(target, draw.dy)),
    ]
    if options.hessian and method == "complex" and not target.foreign:
        rows.append(("hessian symmetry", _hessian(target, draw.dy, rng), "complex step through backward", ""))
    tolerances = {"adjoint": passes, "backward is linear": exact}
    return [
        CheckRow(name, tensor, error, how, tolerances.get(tensor, tolerance), None, why, why == UNDECIDED)
        for tensor, error, how, why in rows
    ]


def _adjoint(
    draw: Draw, second: dict[str, Array], rng: Generator, tolerance: float
) -> tuple[float, float, bool]:
    """Compare <dy, J v> with <Jᵀ dy, v> at the second point.

    Returns:
        The error, the largest one that passes, and whether rounding errors hide what is right.
    """
    target = draw.target
    with target.moved_to(second):
        y, _ = target.run()
        dy = draw_like(y, rng)
        scales = target.scales
        other = Draw(target, dy, _fresh_vjp(target, dy), _TINY, draw.methods, draw.options, scales)
        # normal numbers, not ±1, so that equal errors in two entries cannot cancel
        directions = {name: rng.standard_normal(scale.shape) * scale for name, scale in scales.items()}
        error = other.error(directions)
        if error <= tolerance:
            return error, tolerance, False
        if other.is_rounding(directions, rng):
            return 0.0, tolerance, False
        hidden = other.hidden_error(directions)
        if "difference" in draw.methods.values():
            tolerance = max(tolerance, hidden) if hidden <= LARGE else tolerance
            hidden = np.inf if misled_by_stairs(target, directions) else hidden
        return error, tolerance, tolerance < error <= hidden


def _linearity(draw: Draw, rng: Generator, tolerance: float) -> float:
    target, dy, grads = draw.target, draw.dy, draw.grads
    other = map_tree(lambda part: part * 0.3 if np.ndim(part) == 0 else rng.standard_normal(part.shape), dy)
    a, b = 0.6, -1.7
    together = _fresh_vjp(target, map_tree(lambda one, two: a * one + b * two, dy, other))
    second = _fresh_vjp(target, other)
    difference = norm([together[n] - a * grads[n] - b * second[n] for n in grads])
    error = difference / max(norm(grads) + norm(second), _TINY)
    return 0.0 if not error <= tolerance and difference <= _rounding(draw, rng) else error


def _rounding(draw: Draw, rng: Generator) -> float:
    """Return the size of changes of the gradients that rounding errors explain."""
    there = []
    for nearby, dy in points_nearby(draw.target, draw.dy, rng):
        with draw.target.moved_to(nearby):
            there.append(_fresh_vjp(draw.target, dy))
    return TIMES * max(norm([grads[n] - there[0][n] for n in grads]) for grads in there[1:])


def _gradients_accumulate(draw: Draw, rng: Generator) -> tuple[float, str, str]:
    target, grads = draw.target, draw.grads
    twice = _fresh_vjp(target, draw.dy, times=2)
    worst, why = 0.0, ""
    for name in target.parameters:
        error = norm(twice[name] - 2 * grads[name]) / max(norm(grads[name]), _TINY)
        if error > worst:
            worst, why = error, f"{name}.grad: a second backward pass must add to it (+=, not =)"
    for name in target.real_inputs:
        error = norm(twice[name] - grads[name]) / max(norm(grads[name]), _TINY)
        if error > worst:
            again = _fresh_vjp(target, draw.dy)[name]
            cause = "it modifies the cache" if np.array_equal(again, grads[name]) else KEEPS_NUMBERS
            worst, why = error, f"the gradient of {name} changes when backward runs twice: {cause}"
    times = {name: 2 if name in target.parameters else 1 for name in grads}
    if worst > 1e-12 and norm([twice[n] - times[n] * grads[n] for n in grads]) <= _rounding(draw, rng):
        worst = 0.0
    return worst, "backward twice", why if worst > 1e-12 else ""


def _inputs_not_modified(target: CheckTarget, dy: Any) -> tuple[float, str, str]:
    how = "compared before and after"
    with target.writes_noted() as written:
        _, cache = target.run()
        if written:
            return np.inf, how, f"forward writes into {written[0]}"
        given = copy_tree(dy)
        before = [(name, np.array(array)) for name, array in named_arrays((cache,))]
        target.vjp(given, cache)
    if not all(np.array_equal(a, b) for a, b in zip(leaves(given), leaves(dy), strict=True)):
        return np.inf, how, "backward writes into dy"
    if written:
        return np.inf, how, f"backward writes into {written[0]}"
    for (name, old), (_, new) in zip(before, named_arrays((cache,)), strict=True):
        if not np.array_equal(old, new, equal_nan=old.dtype.kind in "fc"):
            return np.inf, how, f"backward writes into the cache, at {name}"
    return 0.0, how, ""


def _hessian(target: CheckTarget, dy: Any, rng: Generator) -> float:
    scales = target.scales

    def hessian_times(directions: dict[str, Array]) -> Gradients:
        h = step_along(directions, scales, STEP["complex"])
        changes = {n: target.tensors[n] + 1j * h * v for n, v in directions.items()}
        _, cache = target.run(changes)
        return {n: np.imag(g) / h for n, g in target.vjp(dy, cache, changes).items()}

    v, w = ({name: rng.standard_normal(s.shape) * s for name, s in scales.items()} for _ in "vw")
    hv, hw = hessian_times(v), hessian_times(w)
    there = sum(float((w[n] * hv[n]).sum()) for n in v)
    back = sum(float((v[n] * hw[n]).sum()) for n in v)
    size = max(norm([scales[name] * h[name] for name in v]) for h in (hv, hw))
    return abs(there - back) / max(size, _TINY)


def _fresh_vjp(target: CheckTarget, dy: Any, times: int = 1) -> Gradients:
    """Run backward after its own forward pass, on a copy of dy, so that no property affects another."""
    _, cache = target.run()
    return target.vjp(copy_tree(dy), cache, times=times)


_TINY = float(np.finfo(float).tiny)
