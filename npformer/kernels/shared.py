"""What the kernels of both machines share: rows, what dropout kept, and caches of their own."""

from typing import Any, NamedTuple

from npformer.backend import random_kept
from npformer.functional.dropout import check_dropout


def as_rows(x: Any) -> Any:
    """Every axis but the last as one. Shapes: x (..., D) -> (N, D)."""
    return x.reshape(-1, x.shape[-1])


class KeptCache(NamedTuple):
    """Which entries were kept, a byte each where factors take four, and what they were multiplied by."""

    kept: Any  # (...) bool
    factor: float


def draw_kept(x: Any, rate: float, rng: Any) -> KeptCache | None:
    """What dropout keeps of an array of x's shape: the same entries that the plain pair would keep."""
    check_dropout(rate, rng)
    return None if rate == 0 else KeptCache(random_kept(rng, x.shape, rate, x), 1 / (1 - rate))


class ReluDropoutCache(NamedTuple):
    """What relu_dropout_backward needs: y > 0 tells what passed both."""

    y: Any  # (..., F)
    factor: float


class GradientCache(NamedTuple):
    """What cross_entropy_backward needs: the gradient itself, for dloss = 1."""

    dlogits: Any  # (..., V)
    tokens: int
