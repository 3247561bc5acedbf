"""Derivatives by differences, for forward passes that do not take complex numbers or that have kinks.

Central differences with the steps h and h / 2 are combined so that the error of order h² cancels (Richardson
extrapolation). The steps become smaller until the two differences agree.
"""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.check_target import CheckTarget
from npformer.checking.trees import inner, is_real, leaves, map_tree

STEPS = (1e-3, 1e-4, 1e-5, 1e-6)
ONE_SIDED_STEP = 1e-6


def extrapolated(target: CheckTarget, directions: dict[str, Array]) -> tuple[Any, float]:
    """Return the derivative of the output along directions of several tensors, and an estimate of its error.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
    """
    best: tuple[Any, float] = (None, np.inf)
    for h in STEPS:
        wide, narrow = central(target, directions, h), central(target, directions, h / 2)
        error = distance(wide, narrow)
        if not error >= best[1]:
            best = map_tree(lambda w, n: (4 * n - w) / 3, wide, narrow), error
        if error <= 1e-5 * norm(narrow):
            break
    return best


def one_sided(target: CheckTarget, dy: Any, tensor: str, entry: int) -> tuple[float, float]:
    """Return the derivatives of <dy, y> by one entry of a tensor from below and from above.

    Args:
        target: The forward pass.
        dy: The gradient of the output.
        tensor: The name of the tensor.
        entry: The index of the entry in the flat tensor.
    """
    v = np.zeros(target.tensors[tensor].shape)
    v.reshape(-1)[entry] = ONE_SIDED_STEP
    below, here, above = (_output(target, {tensor: v}, h) for h in (-1, 0, 1))
    change = [
        map_tree(lambda a, b: (a - b) / ONE_SIDED_STEP, *pair) for pair in ((here, below), (above, here))
    ]
    return inner(dy, change[0]), inner(dy, change[1])


def norm(tree: Any) -> float:
    """Return the Euclidean norm of all outputs together."""
    return float(np.sqrt(sum(float((np.abs(part) ** 2).sum()) for part in leaves(tree) if is_real(part))))


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
