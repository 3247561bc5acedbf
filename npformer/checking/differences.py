"""Derivatives by differences, for forward passes that do not take complex numbers or that have kinks.

Central differences with the steps h and h / 2 are combined so that the error of order h² cancels (Richardson
extrapolation). The steps become smaller until the two differences agree. All steps are relative to the scales
of the entries. Larger steps follow where rounding errors are most of a difference, as in 1 + 1e-8 x.
"""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.check_target import CheckTarget
from npformer.checking.scales import step_along
from npformer.checking.trees import is_real, leaves, map_tree, norm

STEPS = (1e-3, 1e-4, 1e-5, 1e-6)
ONE_SIDED_STEP = 1e-6
LARGER_STEPS = 10.0 ** np.arange(-2, 13)
EPSILON = float(np.finfo(float).eps)


def extrapolated(target: CheckTarget, directions: dict[str, Array], shrink: float = 1.0) -> tuple[Any, float]:
    """Return the derivative of the output along directions of several tensors, and an estimate of its error.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        shrink: A factor of all steps.
    """
    best: tuple[Any, float] = (None, np.inf)
    for step in STEPS:
        h = step_along(directions, target.scales, shrink * step)
        wide, narrow = central(target, directions, h), central(target, directions, h / 2)
        error = distance(wide, narrow)
        if not error >= best[1]:
            best = map_tree(lambda w, n: (4 * n - w) / 3, wide, narrow), error
        if error <= 1e-5 * norm(narrow):
            break
    return _by_larger_steps(target, directions, best)


def _by_larger_steps(
    target: CheckTarget, directions: dict[str, Array], best: tuple[Any, float]
) -> tuple[Any, float]:
    """Return a better derivative than `best` if rounding errors of the output spoil it, and `best` otherwise.

    Each step is ten times the last one. It must confirm what is known: else it crosses a kink or a bend.
    """
    size = EPSILON * norm(_output(target, directions, 0.0))
    rounding = size / step_along(directions, target.scales, STEPS[0])
    known = best[1] + rounding
    for step in LARGER_STEPS if rounding > 1e-8 * norm(best[0]) else ():
        h = step_along(directions, target.scales, step)
        wide, narrow = central(target, directions, h), central(target, directions, h / 2)
        error = distance(wide, narrow) + size / h
        found = map_tree(lambda w, n: (4 * n - w) / 3, wide, narrow)
        if not (error < known and distance(found, best[0]) <= 10 * known):
            break
        best, known = (found, error), error
    return best


def one_sided(target: CheckTarget, dy: Any, directions: dict[str, Array]) -> tuple[float, float]:
    """Return the smallest and the largest derivative of <dy, y> along directions that a kink allows.

    At a kink, the derivative of each output from below differs from the one from above, and every number
    between them is a derivative. The bounds add up these numbers, each times its entry of dy.

    Args:
        target: The forward pass.
        dy: The gradient of the output.
        directions: A dict from the name of a tensor to a direction of its shape.
    """
    h = step_along(directions, target.scales, ONE_SIDED_STEP)
    below, here, above = (_output(target, directions, step) for step in (-h, 0.0, h))
    least = most = 0.0
    for d, *y in zip(*map(leaves, (dy, below, here, above)), strict=True):
        if is_real(y[0]):
            sides = np.stack([d * (y[1] - y[0]) / h, d * (y[2] - y[1]) / h])
            least, most = least + float(sides.min(0).sum()), most + float(sides.max(0).sum())
    return least, most


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
