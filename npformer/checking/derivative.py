"""Directional derivatives of a forward pass, by complex step and by differences.

Complex step: f(x + ihv) = f(x) + ih f'(x)v - h²/2 ..., so Im f(x + ihv) / h is the derivative along v.
No numbers are subtracted, so h can be so small that the next term vanishes: the result is exact to rounding.

Differences, for forward passes that do not take complex numbers or that have kinks: a central difference
subtracts two nearly equal numbers and reaches about nine digits. Those with the steps h and h / 2 are
combined so that the error of order h² cancels (Richardson extrapolation). The steps become smaller until the
two differences agree. Larger steps follow where rounding errors are most of a difference, as in 1 + 1e-8 x.

Steps and directions are measured in units of the entries of a tensor. A step of 1e-4 is small beside an entry
of 1, and large beside one of 1e-6. So each entry has a scale, which is its own size, and a derivative is
computed by a step that is small beside all scales.

Source: Squire and Trapp 1998.
"""

from typing import Any

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import CheckTarget
from npformer.checking.trees import is_real, leaves, map_tree, norm

METHOD_NAMES = {"complex": "complex step", "difference": "central difference"}
STEP = {"complex": 1e-20, "difference": 1e-6}  # relative to the scales
STEPS = (1e-3, 1e-4, 1e-5, 1e-6)  # of an extrapolation
LARGER_STEPS = 10.0 ** np.arange(-2, 13)
FAR_STEPS = (1.0, 1e1, 1e4, 1e7, 1e10)  # from the scales on: where slopes show that rounding errors hid
FAR_MOVES = np.array([[-1.0, -2, -3], [1, 2, 3]])  # times a far step, to both sides
STRAIGHT = 1e-2  # relative: slopes of these moves that differ by less are those of a straight line
KINKED = 0.1  # relative: slopes of the two sides that differ by more are those of a kink or a bend
HIDDEN_SLOPE = 0.1  # relative to the slope: larger rounding errors at the scale itself hide it
CONVERGED = 1e-5  # relative: where two differences agree so well, no smaller step is better
EPSILON = float(np.finfo(float).eps)


def typical(scales: Array) -> float:
    """Return the geometric mean of the scales of a tensor."""
    return float(np.exp(np.log(scales).mean())) if scales.size else 1.0


def step_along(directions: dict[str, Array], scales: dict[str, Array], h: float) -> float:
    """Return the step along directions of several tensors that moves no entry by more than h times its scale.

    Args:
        directions: A dict from the name of a tensor to a direction of its shape.
        scales: The scales of the tensors.
        h: The size of the step, relative to the scales.
    """
    longest = max(float((np.abs(v) / scales[name]).max(initial=0)) for name, v in directions.items())
    return h / (longest or 1.0)  # along a direction of zeros, no step moves anything


def signs(rng: Generator, shape: tuple[int, ...]) -> Array:
    """Return a random direction of +1 and -1, so that every entry of a tensor counts."""
    return rng.integers(0, 2, shape) * 2.0 - 1.0


def uneven_signs(rng: Generator, shape: tuple[int, ...]) -> Array:
    """Return a random direction of different sizes, so that equal errors in two entries cannot cancel."""
    return signs(rng, shape) * rng.uniform(0.5, 1.5, shape)


def derivative_along(target: CheckTarget, directions: dict[str, Array], method: str = "complex") -> Any:
    """Return the derivative of the output y along directions of several tensors at once.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        method: "complex" or "difference".

    Returns:
        An array of the shape of y, or one for each output.
    """
    if method == "difference":
        return extrapolated(target, directions)[0]
    h = step_along(directions, target.scales, STEP[method])
    y, _ = target.run({name: target.tensors[name] + 1j * h * v for name, v in directions.items()})
    return map_tree(lambda part: np.imag(part) / h, y)


def extrapolated(target: CheckTarget, directions: dict[str, Array], shrink: float = 1.0) -> tuple[Any, float]:
    """Return the derivative of the output along directions of several tensors, and an estimate of its error.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        shrink: A factor of all steps.
    """
    best: tuple[Any, float] = (None, np.inf)
    rounding = EPSILON * norm(_output(target, directions, 0.0))
    for step in STEPS:
        h = step_along(directions, target.scales, shrink * step)
        wide, narrow = central(target, directions, h), central(target, directions, h / 2)
        error = distance(wide, narrow) + rounding / h
        if not error >= best[1]:
            best = map_tree(lambda w, n: (4 * n - w) / 3, wide, narrow), error
        if error <= CONVERGED * norm(narrow):
            break
    return _by_larger_steps(target, directions, best, rounding, shrink)


def _by_larger_steps(
    target: CheckTarget, directions: dict[str, Array], best: tuple[Any, float], rounding: float, shrink: float
) -> tuple[Any, float]:
    """Return a better derivative than `best` if rounding errors of forward spoil it, and `best` otherwise.

    Each step is ten times the last one. It must confirm what is known: else it crosses a kink or a bend.
    `rounding` is the size of the rounding errors of the output, and `shrink` a factor of all steps.
    """
    size, first = norm(best[0]), step_along(directions, target.scales, shrink * STEPS[0])
    is_spoilt = rounding / first > 1e-8 * size or best[1] > CONVERGED * size
    for step in LARGER_STEPS if is_spoilt else ():
        h = step_along(directions, target.scales, shrink * step)
        wide, narrow = central(target, directions, h), central(target, directions, h / 2)
        error = distance(wide, narrow) + rounding / h
        found = map_tree(lambda w, n: (4 * n - w) / 3, wide, narrow)
        if not (error < best[1] and distance(found, best[0]) <= 10 * best[1]):
            break
        best = found, error
    return best


def one_sided(
    target: CheckTarget, dy: Any, directions: dict[str, Array], step: float = STEP["difference"]
) -> tuple[float, float]:
    """Return the smallest and the largest derivative of <dy, y> along directions that a kink allows.

    At a kink, the derivative of each output from below differs from the one from above, and every number
    between them is a derivative. The bounds add up these numbers, each times its entry of dy.

    Args:
        target: The forward pass.
        dy: The gradient of the output.
        directions: A dict from the name of a tensor to a direction of its shape.
        step: The step, relative to the scales.
    """
    h = step_along(directions, target.scales, step)
    below, here, above = (_output(target, directions, move) for move in (-h, 0.0, h))
    least = most = 0.0
    for d, *y in zip(*map(leaves, (dy, below, here, above)), strict=True):
        if is_real(y[0]):
            sides = np.stack([d * (y[1] - y[0]) / h, d * (y[2] - y[1]) / h])
            least, most = least + float(sides.min(0).sum()), most + float(sides.max(0).sum())
    return least, most


def hides_slopes(target: CheckTarget, directions: dict[str, Array], derivative: Any = None) -> bool:
    """Return whether rounding errors hide a slope of an output, which a larger step shows.

    1e8 + |x| is constant near an x of 1e-8, and so are the floats around it: no difference there tells its
    slope from 0. A step of 1e-4 shows a slope of -1 below and of 1 above. If both were the same, the
    steps of `extrapolated` would have found it.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        derivative: The exact derivative of the output along the directions, where it is known: then only
            outputs with the derivative 0 are looked at.
    """
    at_scale, here = step_along(directions, target.scales, 1.0), _output(target, directions, 0.0)
    flat = here if derivative is None else derivative
    unseen = [np.full(np.shape(part), derivative is None) | (part == 0) for part in leaves(flat)]
    for step in FAR_STEPS:
        if not any(part.any() for part in unseen):
            break
        h = step * at_scale
        moves = [_output(target, directions, move * h) for move in FAR_MOVES.ravel()]
        for number, (y, *moved) in enumerate(zip(*map(leaves, (here, *moves)), strict=True)):
            along = FAR_MOVES.reshape(2, 3, *(1,) * np.ndim(y)) * h
            slopes = (np.reshape(moved, (2, 3, *np.shape(y))) - y) / along
            left, right = slopes[:, 0]
            slope, rounding = np.maximum(np.abs(left), np.abs(right)), EPSILON * np.abs(y)
            is_seen = unseen[number] & (slope > 10 * rounding / h)
            # a slope is the same with steps of two and three times the size; two rounding errors may agree
            is_straight = np.ptp(slopes, axis=1).max(0) < STRAIGHT * slope
            is_kink = is_straight & (np.abs(left - right) > KINKED * slope)
            if bool((is_seen & is_kink & (rounding / at_scale > HIDDEN_SLOPE * slope)).any()):
                return True
            unseen[number] = unseen[number] & ~is_seen
    return False


def distance(a: Any, b: Any) -> float:
    """Return the norm of the difference of two outputs."""
    return norm(map_tree(lambda x, y: x - y, a, b))


def central(target: CheckTarget, directions: dict[str, Array], h: float) -> Any:
    """Return the central difference of the output along directions of several tensors.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        h: The step.
    """
    above, below = _output(target, directions, h), _output(target, directions, -h)
    return map_tree(lambda up, down: (up - down) / (2 * h), above, below)


def _output(target: CheckTarget, directions: dict[str, Array], h: float) -> Any:
    """Return the output at the tensors plus h times the directions, with floats in place of integers."""
    y, _ = target.run({name: target.tensors[name] + h * v for name, v in directions.items()})
    return map_tree(lambda part: part + 0.0 if is_real(part) else part * 0, y)
