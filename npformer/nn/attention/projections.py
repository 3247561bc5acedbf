"""Projection: the linear map from vectors to the queries, keys or values of all heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.caches import cache_class
from npformer.functional.heads import merge_heads, split_heads
from npformer.functional.linear import LinearCache
from npformer.functional.packing import Packing, pack, unpack
from npformer.nn.linear import Linear
from npformer.validation import require_choice


@cache_class
class ProjectionCache(NamedTuple):
    """The cache of Projection.project."""

    linear: LinearCache
    activation: Any
    packing: Packing | None

    @property
    def x(self) -> Array:
        """The input of the projection."""
        return self.linear.x

    @property
    def weight(self) -> Array:
        """The weight of the projection."""
        return self.linear.weight


class Projection(Linear):
    """A linear map f(x W + b) whose output is split into heads. In the paper f is the identity.

    A fused projection concatenates several weight matrices, so that one matrix product computes, for example,
    keys and values. They are the parts of the output. Shapes: x (B, T, D), or packed rows (N, D) -> one array
    (B, H, T, width / H) for each part.

    Args:
        d_in: The width D of x.
        widths: The width of each part, which is H times the width of a head.
        n_heads: The number H of heads of each part.
        activation: The name of the activation f.
        bias: Add a learned bias.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        d_in: int,
        widths: Sequence[int],
        n_heads: Sequence[int],
        *,
        activation: str = "none",
        bias: bool = True,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_choice("activation", activation, tuple(ACTIVATIONS))
        super().__init__(d_in, sum(widths), bias=bias, rng=rng, dtype=dtype)
        self.widths, self.n_heads, self.activation = tuple(widths), tuple(n_heads), activation
        self.weight.widths = self.widths

    def project(self, x: Array, packing: Packing | None = None) -> tuple[list[Array], ProjectionCache]:
        """Return a list with an array (B, H, T, width / H) for each part, and the cache.

        `packing` is the packing of x, or None if x is not packed.
        """
        activate, _ = ACTIVATIONS[self.activation]
        y, linear_cache = self.forward(x)
        y, activation_cache = activate(y)
        y = unpack(y, packing)  # (B, T, W)
        parts, start = [], 0
        for width, n_heads in zip(self.widths, self.n_heads, strict=True):
            parts.append(split_heads(y[..., start : start + width], n_heads))
            start += width
        return parts, ProjectionCache(linear_cache, activation_cache, packing)

    def project_backward(self, dparts: Sequence[Array], cache: ProjectionCache) -> Array:
        """Return dx, of the shape of x, from a list with the gradient (B, H, T, width / H) of each part."""
        _, activate_backward = ACTIVATIONS[self.activation]
        # the parts lie side by side in y
        merged = [merge_heads(dpart) for dpart in dparts]
        dy = merged[0] if len(merged) == 1 else array_module(merged[0]).concatenate(merged, -1)
        dy = activate_backward(pack(dy, cache.packing), cache.activation)
        return self.backward(dy, cache.linear)
