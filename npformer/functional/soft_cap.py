"""The soft cap: numbers are pressed smoothly into the interval from -cap to cap.

Gemma 2 caps the scores of attention at 50 and the logits at 30. Near 0 the function is almost x itself, and
far away its slope is almost 0, so that no gradient pushes a score further out.

Source: Gemma team 2024, "Gemma 2", section 2; Bello et al. 2016, section 3.2, for logits.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class


@cache_class
class SoftCapCache(NamedTuple):
    """The cache of soft_cap."""

    t: Array  # tanh(x / cap), of the shape of x


def soft_cap(x: Array, cap: float) -> tuple[Array, SoftCapCache]:
    """Compute y = cap tanh(x / cap). Shapes: x (...) -> y (...), and the cache."""
    t = array_module(x).tanh(x / cap)
    return cap * t, SoftCapCache(t)


def soft_cap_backward(dy: Array, cache: SoftCapCache) -> Array:
    """Return dx = dy (1 - t²), where t = tanh(x / cap), of the shape of dy."""
    # y = cap t, t = tanh(x / cap): the factors cap and 1 / cap cancel
    return dy * (1 - cache.t * cache.t)
