"""Directional derivatives of a forward pass, by complex step and by central differences.

Complex step: f(x + ihv) = f(x) + ih f'(x)v - h²/2 ..., so Im f(x + ihv) / h is the derivative along v.
No numbers are subtracted, so h can be so small that the next term vanishes: the result is exact to rounding.
Central differences subtract two nearly equal numbers and reach about nine digits. Both steps are relative to
the scales of the entries.

Source: Squire and Trapp 1998.
"""

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import CheckTarget
from npformer.checking.scales import step_along
from npformer.checking.trees import map_tree

STEP = {"complex": 1e-20, "difference": 1e-6}  # relative to the scales
METHOD_NAMES = {"complex": "complex step", "difference": "central difference"}


def derivative(target: CheckTarget, name: str, v: Array, method: str = "complex") -> Array:
    """Return the derivative of the output y along a direction of one tensor.

    Args:
        target: The forward pass.
        name: The name of the tensor.
        v: The direction, of the shape of the tensor.
        method: "complex" or "difference".

    Returns:
        An array of the shape of y, or one for each output.
    """
    return derivative_along(target, {name: v}, method)


def derivative_along(target: CheckTarget, directions: dict[str, Array], method: str = "complex") -> Array:
    """Return the derivative of the output y along directions of several tensors at once.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        method: "complex" or "difference".

    Returns:
        An array of the shape of y, or one for each output.
    """
    h = step_along(directions, target.scales, STEP[method])
    if method == "complex":
        y, _ = target.run({name: target.tensors[name] + 1j * h * v for name, v in directions.items()})
        return map_tree(lambda part: np.imag(part) / h, y)
    above, _ = target.run({name: target.tensors[name] + h * v for name, v in directions.items()})
    below, _ = target.run({name: target.tensors[name] - h * v for name, v in directions.items()})
    return map_tree(lambda up, down: (up - down) / (2 * h), above, below)


def signs(rng: Generator, shape: tuple[int, ...]) -> Array:
    """Return a random direction of +1 and -1, so that every entry of a tensor counts."""
    return rng.integers(0, 2, shape) * 2.0 - 1.0


def uneven_signs(rng: Generator, shape: tuple[int, ...]) -> Array:
    """Return a random direction of different sizes, so that equal errors in two entries cannot cancel."""
    return signs(rng, shape) * rng.uniform(0.5, 1.5, shape)
