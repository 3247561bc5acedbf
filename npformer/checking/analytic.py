"""Forward passes that take complex numbers, along which the complex step is exact.

An analytic function f has a derivative by z and none by its conjugate. Cauchy's sum over N points of a small
circle,

    1 / (N r) · Σ f(x + r ω v) ω    with ω = exp(2πi n / N),

is the derivative by the conjugate, up to r^(N-2). It is 0 for an analytic function, and 1/2 for the modulus,
the real part and the conjugate, in whatever small part of f they stand. A kink that a circle crosses leaves a
part as well, which vanishes if the circle becomes smaller, and so does a part that takes complex numbers to
first order only, such as erf(x) + i y erf'(x).
"""

import warnings
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import (
    central,
    derivative_along,
    distance,
    extrapolated,
    hides_slopes,
    step_along,
)
from npformer.checking.stairs import misled_by_stairs
from npformer.checking.trees import is_real, map_tree, norm

POINTS = np.exp(2j * np.pi * np.arange(8) / 8)  # ω
RADII = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)  # relative to the scales
EPSILON = float(np.finfo(float).eps)
EXACT = 1e-12  # relative to the derivative: a larger derivative by the conjugate shows in a check
VANISHING = 0.2  # the largest part on a circle that vanishes, relative to the part on the next larger one
DIFFERENT = 1e-4  # relative: a complex step and a difference that differ by more do not agree
SAME = 1e-9  # relative: the outputs of real and of complex numbers differ by rounding errors alone
SHRINKS = (1.0, 0.4, 0.16)  # factors of the steps of the differences that may contradict a complex step
FIRST_STEP = 1e-4  # of the difference that is tried first: where forward is smooth, it is correct to 1e-8


def takes_complex(target: CheckTarget, directions: dict[str, Array]) -> bool:
    """Return whether the complex step is exact along directions of several tensors.

    It is exact if the output of complex numbers is the output of real ones, if it is analytic, and if a
    difference does not contradict it, nor a slope beyond the rounding errors.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
    """
    y = target.run()[0]
    size, zero_output = norm(y), EPSILON * norm([target.tensors[name] for name in directions])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy, about imaginary parts that it drops
            as_complex = target.run({name: target.tensors[name] + 0j for name in directions})[0]
            noise = distance(map_tree(np.real, as_complex), y)
            if noise > SAME * size + 100 * zero_output:
                return False
            exact = derivative_along(target, directions)
            if hides_slopes(target, directions, exact) or misled_by_stairs(target, directions, exact):
                return False
            noise = 10 * (EPSILON * size + noise)
            return _is_analytic(target, directions, noise, norm(exact)) and _is_confirmed(
                target, directions, exact, noise / FIRST_STEP
            )
    except Exception:  # math.erf, np.floor and others raise errors of many kinds for complex numbers
        return False


def _is_analytic(target: CheckTarget, directions: dict[str, Array], noise: float, length: float) -> bool:
    """Return whether the derivative by the conjugate is 0.

    `noise` is the size of the rounding errors of the output, and `length` the norm of the derivative.
    """
    found = np.inf
    for radius in RADII:
        r = step_along(directions, target.scales, radius)
        passes = noise / r + EXACT * length
        before, found = found, _by_conjugate(target, directions, r)
        if found <= passes:
            break
    return found <= VANISHING * before  # else it stays, and is only hidden by the rounding errors


def _by_conjugate(target: CheckTarget, directions: dict[str, Array], r: float) -> float:
    """Return the norm of the derivative of the output by the conjugate."""
    total: Any = None
    for w in POINTS:
        y = target.run({name: target.tensors[name] + r * w * v for name, v in directions.items()})[0]
        part = map_tree(lambda leaf, w=w: leaf * w / (len(POINTS) * r) if is_real(leaf) else 0, y)
        total = part if total is None else map_tree(lambda a, b: a + b, total, part)
    return norm(total)


def _is_confirmed(target: CheckTarget, directions: dict[str, Array], exact: Any, noise: float) -> bool:
    """Return whether differences, with rounding errors of the size of `noise`, agree with a derivative."""
    numeric = central(target, directions, step_along(directions, target.scales, FIRST_STEP))
    size = norm(numeric)
    if noise <= size and distance(exact, numeric) <= DIFFERENT * size + noise:
        return True
    for shrink in SHRINKS:  # by chance, two differences may have the same rounding error
        numeric, uncertainty = extrapolated(target, directions, shrink)
        if not distance(exact, numeric) > DIFFERENT * norm(numeric) + 10 * uncertainty:
            return True
    return False
