"""Directional derivatives of a forward pass: by complex step, and by central differences.

Complex step: f(x + ihv) = f(x) + ih f'(x)v - h²/2 ..., so Im f(x + ihv) / h is the derivative along v.
Nothing is subtracted, so h can be so small that the next term vanishes: the result is exact to rounding.
Central differences subtract two nearly equal numbers, and stop near nine digits.
Source: Squire and Trapp 1998.
"""

import numpy as np

STEP = {"complex": 1e-20, "difference": 1e-6}
METHOD_NAMES = {"complex": "complex step", "difference": "central difference"}


def derivative(subject, name, v, method="complex"):
    """How forward's output changes along the direction v of one tensor. Shapes: v as the tensor -> as y."""
    return derivative_along(subject, {name: v}, method)


def derivative_along(subject, directions, method="complex"):
    """The same along several tensors' directions at once."""
    h = STEP[method]
    if method == "complex":
        y, _ = subject.run({name: subject.tensors[name] + 1j * h * v for name, v in directions.items()})
        return np.imag(y) / h
    above, _ = subject.run({name: subject.tensors[name] + h * v for name, v in directions.items()})
    below, _ = subject.run({name: subject.tensors[name] - h * v for name, v in directions.items()})
    return (above - below) / (2 * h)


def signs(rng, shape):
    """A random direction of +1 and -1: every entry of a tensor takes part, none can hide."""
    return rng.integers(0, 2, shape) * 2.0 - 1.0
