"""PatchEmbedding: the layer that turns an image into a sequence of vectors, one for each patch."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.patches import PatchEmbeddingCache, patch_embedding, patch_embedding_backward
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Module, Parameter


class PatchEmbedding(Module):
    """The patch embedding y_n = patch_n weightᵀ + bias.

    Shapes: images (B, C, Y, X) -> y (B, N, D) for N patches. The weight is (D, C, P, Q), and the bias (D,).

    Args:
        d_model: The width D of the vectors.
        n_colours: The number C of colours.
        size: The height P and the width Q of a patch, in pixels.
        std: The standard deviation of the initial weights.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Dosovitskiy et al. 2021, equation 1.
    """

    def __init__(
        self,
        d_model: int,
        n_colours: int,
        size: tuple[int, int],
        *,
        std: float = 0.02,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.weight = Parameter(normal(default_rng(rng), (d_model, n_colours, *size), std, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype))

    def forward(self, images: Array) -> tuple[Array, PatchEmbeddingCache]:
        """Return y, of shape (B, N, D), and the cache."""
        return patch_embedding(images, self.weight.value, self.bias.value)

    def backward(self, dy: Array, cache: PatchEmbeddingCache) -> Array:
        """Return dimages, of shape (B, C, Y, X)."""
        dimages, dweight, dbias = patch_embedding_backward(dy, cache)
        self.weight.accumulate(dweight)
        self.bias.accumulate(dbias)
        return dimages
