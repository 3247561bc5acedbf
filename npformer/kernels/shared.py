"""Functions and caches that the kernels for NumPy and CuPy share: arrays as rows, and dropout masks."""

import math
from typing import Any, NamedTuple

from npformer.backend import Array, Generator, random_keep_mask
from npformer.functional.caches import cache_class
from npformer.functional.dropout import check_dropout


def as_rows(x: Any) -> Any:
    """Join all axes but the last. Shapes: x (..., D) -> (N, D); a single number () -> (1, 1)."""
    if x.ndim == 0:
        return x.reshape(1, 1)
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@cache_class
class DropoutMask(NamedTuple):
    """A dropout mask as bools and one factor.

    A bool needs one byte. An entry of the mask of the plain pair, which is a float32, needs four.
    """

    kept: Array  # (...) bool, False at dropped entries
    factor: float  # 1 / (1 - p)


def draw_dropout_mask(x: Array, p: float, rng: Generator | None) -> DropoutMask | None:
    """Draw the same dropout mask as the plain pair, or return None if p is 0.

    Args:
        x: An array with the shape of the mask, on the device where the mask is needed.
        p: The dropout probability.
        rng: The generator. It is needed if p > 0.

    Raises:
        UserError: If p is outside [0, 1), or if there is no generator and p > 0.
    """
    if p == 0:
        return None
    check_dropout(p, rng)
    return DropoutMask(random_keep_mask(rng, x.shape, p, x), 1 / (1 - p))


@cache_class
class ReluDropoutCache(NamedTuple):
    """The cache of relu_dropout.

    It contains no dropout mask, since y > 0 at exactly those entries that are positive and not dropped.
    """

    y: Array  # (..., F) the output
    factor: float  # 1 / (1 - p), or 1 without dropout


@cache_class
class GradientCache(NamedTuple):
    """The cache of cross_entropy: the gradient of the logits for dloss = 1."""

    dlogits: Array  # (..., V)
