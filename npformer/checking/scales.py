"""The scale of a tensor: steps and directions of a check are measured in units of its entries.

A step of 1e-4 is small beside an entry of 1, and large beside one of 1e-6. So each entry has a scale, which
is its own size, and a derivative is computed by a step that is small beside all scales.
"""

import numpy as np

from npformer.backend import Array

RANGE = 4  # standard deviations of the logarithms: an entry below this range is small by chance


def scales_of(x: Array) -> Array:
    """Return the size of each entry of a tensor, an array of its shape.

    An entry that is 0, or small by chance beside the others, has the scale of the smallest usual entry: else
    its step would vanish in the rounding errors of the output. If all entries are 0, the scale is 1.
    """
    sizes = np.abs(x)
    usual = np.log(sizes[(sizes > 0) & np.isfinite(sizes)])
    if not usual.size:
        return np.ones(x.shape)
    least = np.exp(usual.mean() - RANGE * usual.std())
    return np.where(sizes > 0, np.maximum(sizes, least), np.exp(usual.mean()))


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
