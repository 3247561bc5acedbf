"""Output layers of some families: ScaledOutput multiplies what it reads, CappedOutput limits the logits."""

from __future__ import annotations

from typing import Any

from npformer.backend import Array
from npformer.functional.soft_cap import soft_cap, soft_cap_backward
from npformer.nn.checks import check_gradient
from npformer.nn.module import Module


class ScaledOutput(Module):
    """An output layer whose input is multiplied by a factor: y = output(factor x).

    Shapes: x (..., D) -> y (..., V).

    Args:
        output: The output layer, a Linear or a TiedProjection.
        factor: The factor.
    """

    def __init__(self, output: Any, factor: float) -> None:
        self.output, self.factor = output, factor

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return y, of shape (..., V), and the cache."""
        y, cache = self.output.forward(x * self.factor)
        return y, (cache,)  # a cache of its own, by which the explorer tells this layer from the one inside

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (..., D)."""
        # y = output(factor x)
        dx: Array = self.output.backward(dy, cache[0]) * self.factor
        return dx


class CappedOutput(Module):
    """An output layer whose logits are softly capped: y = cap tanh(output(x) / cap).

    Shapes: x (..., D) -> y (..., V).

    Args:
        output: The output layer, a Linear or a TiedProjection.
        cap: The largest size of a logit.
    """

    def __init__(self, output: Any, cap: float) -> None:
        self.output, self.cap = output, cap

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return y, of shape (..., V), and the cache."""
        logits, output_cache = self.output.forward(x)
        y, cap_cache = soft_cap(logits, self.cap)
        return y, (output_cache, cap_cache)

    def backward(self, dy: Array, cache: Any) -> Array:
        """Return dx, of shape (..., D)."""
        output_cache, cap_cache = cache
        check_gradient(dy, cap_cache.t.shape, "CappedOutput")
        # y = soft_cap(output(x))
        dx: Array = self.output.backward(soft_cap_backward(dy, cap_cache), output_cache)
        return dx
