"""Situations of use in which a backward pass in NumPy must return the same gradients.

another forward:  a forward pass of a longer batch may come before the backward pass.
any layout of dy: the entries of dy may lie in memory in another order, and with gaps.
float32:          where an input or a parameter was given in float32, the gradients in float32 are those in
                  float64 up to rounding errors. At other points, rounding errors are others: what stays the
                  same there is a mistake.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from npformer.checking.check_target import CheckTarget, Gradients
from npformer.checking.draw import TIMES, Draw
from npformer.checking.report import CheckRow
from npformer.checking.trees import copy_tree, is_real, leaves, map_tree, norm

SAME = 1e-10  # relative: sums in another order of memory differ by rounding errors only
SAME_FLOAT32 = 1e-2  # relative: a sum of many float32 numbers may lose five of their seven digits
STEADY = 1e-4  # relative: an error in float32 that stays the same at other points is no rounding error
OTHER_POINTS = 4  # the number of these points, and how far they are away, relative to the entries
AWAY = 2e-3
FLOAT32_EPSILON = float(np.finfo(np.float32).eps)

Outcome: TypeAlias = tuple[
    float, str, float, None, str
]  # error, method, tolerance, entry and diagnosis of a row


def situation_rows(name: str, draw: Draw) -> Iterator[CheckRow]:
    """Yield one row for each situation. For a foreign layer, they are those of its library.

    Args:
        name: The name of the checked object.
        draw: A dy with its gradients, which are right.
    """
    if draw.target.foreign is not None:
        yield from draw.target.situation_rows(name, draw.dy, draw.grads, hessian=draw.options.hessian)
        return
    yield from (
        CheckRow(name, "another forward", *found) for found in _after_a_longer_batch(draw.target, draw)
    )
    if any(np.ndim(part) for part in leaves(draw.dy)):
        yield CheckRow(name, "any layout of dy", *_layouts(draw))
    if draw.target.given_float32:
        yield from (CheckRow(name, "float32", *found) for found in _float32(draw))


def _after_a_longer_batch(target: CheckTarget, draw: Draw) -> Iterator[Outcome]:
    """Run forward on a batch of twice the length before backward."""
    _, cache = target.run()
    try:
        target.run_twice_as_long()
    except Exception:  # forward may refuse it, beside other arguments of the former length
        return
    try:
        error, tensor = _largest_error(target.vjp(copy_tree(draw.dy), cache), draw.grads)
        wrong = f"the gradient of {tensor} is another one"
    except Exception as raised:
        error, wrong = np.inf, f"backward raises {type(raised).__name__}"
    why = f"{wrong} if forward ran with a longer batch meanwhile: keep lengths in the cache, not in the layer"
    yield error, "the same gradients", SAME, None, "" if error <= SAME else why


def _layouts(draw: Draw) -> Outcome:
    """Compare the gradients for copies of dy whose memory is in the order of columns, or has gaps."""
    worst, why = 0.0, ""
    for lay_out in (np.asfortranarray, lambda part: np.stack([part, 0 * part], -1)[..., 0]):
        dy = map_tree(lambda part, f=lay_out: f(part) if np.ndim(part) else part, draw.dy)
        found = draw.target.vjp(dy, draw.target.run()[1])
        error, tensor = _largest_error(found, draw.grads)
        if not error <= max(worst, SAME):
            worst, why = error, f"the gradient of {tensor} is another one for a dy that is not contiguous"
    return worst, "the same gradients", SAME, None, why


def _float32(draw: Draw) -> Iterator[Outcome]:
    """Compare the gradients in float32 with those in float64, at the same point and for the same dy.

    A gradient may differ by as much as it does in float64 when the point moves by rounding errors of float32.
    """
    point = {name: value.astype(np.float32) for name, value in draw.target.tensors.items()}
    moved = {
        name: value.astype(np.float64) * (1 + FLOAT32_EPSILON * np.resize([1, -1], value.shape))
        for name, value in point.items()
    }
    right, there = (_gradients(draw, tensors, np.float64) for tensors in (point, moved))
    found = _gradients(draw, point, np.float32)
    if not all(np.isfinite(norm(tree)) for tree in (right, found)):
        return  # beyond the range of float32
    near = {
        name: found[name] - np.clip(found[name] - g, *_band(there[name] - g)) for name, g in right.items()
    }
    error, tensor = _largest_error(near, right)
    largest = SAME_FLOAT32
    if error <= largest:
        steady_part = _steady_part(draw, point)
        steady, of_steady = _largest_error({name: g + steady_part[name] for name, g in right.items()}, right)
        if steady > STEADY:
            error, tensor, largest = steady, of_steady, STEADY
    why = "" if error <= largest else f"the gradient of {tensor} is another one in float32"
    yield error, "compared with float64", largest, None, why


def _steady_part(draw: Draw, point: dict[str, Any]) -> Gradients:
    """Return the mean error of the gradients in float32 at points around this one, without rounding errors.

    Rounding errors at different points differ, so their mean is no larger than a few of their deviations.
    """
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(OTHER_POINTS):
        there = {
            name: (value * (1 + AWAY * rng.uniform(-1, 1, value.shape))).astype(np.float32)
            for name, value in point.items()
        }
        found, right = (_gradients(draw, there, dtype) for dtype in (np.float32, np.float64))
        errors.append({name: found[name] - g for name, g in right.items()})
    steady = {}
    for name in errors[0]:
        parts = np.array([error[name] for error in errors], np.float64)
        spread = norm(parts - parts.mean(0)) / np.sqrt(OTHER_POINTS)
        steady[name] = parts.mean(0) if norm(parts.mean(0)) > TIMES * spread else np.zeros_like(parts[0])
    return steady


def _band(difference: Any) -> tuple[Any, Any]:
    """Return the rounding errors that are allowed, below and above."""
    return -TIMES * np.abs(difference), TIMES * np.abs(difference)


def _gradients(draw: Draw, tensors: dict[str, Any], dtype: type[np.floating]) -> Gradients:
    """Return the gradients in this dtype for the same dy in float32."""
    changes = {name: value.astype(dtype) for name, value in tensors.items()}
    dy = map_tree(lambda part: dtype(np.float32(part)) if is_real(part) else part, draw.dy)
    return draw.target.vjp(dy, draw.target.run(changes)[1], changes)


def _largest_error(found: Gradients, right: Gradients) -> tuple[float, str]:
    """Return the largest relative error of the gradients of all tensors, and the name of the tensor."""
    least = 1e-3 * max(*(norm(g) for g in right.values()), np.finfo(float).tiny)
    errors = {name: norm(found[name] - g) / max(norm(g), least) for name, g in right.items()}
    worst = max(errors, key=lambda name: (errors[name] != errors[name], errors[name]))
    return errors[worst], worst
