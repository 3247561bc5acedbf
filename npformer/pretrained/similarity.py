"""SimilarityTo: the similarity of a text to another one, as a model whose tokens can be explained."""

from __future__ import annotations

from typing import Any, NamedTuple

from npformer.backend import Array, array_module, like
from npformer.functional.caches import cache_class
from npformer.functional.pooling import (
    CosineCache,
    cosine_similarity,
    cosine_similarity_backward,
    mean_pool,
    mean_pool_backward,
)
from npformer.models.bert import Bert, BertEmbedding
from npformer.nn.module import Module


def pool(x: Array, mask: Array, mode: str) -> tuple[Array, Any]:
    """Make one vector of the vectors of the tokens of each text.

    Args:
        x: The vectors, of shape (B, T, D).
        mask: Bool, (B, T), True at tokens.
        mode: "mean" for their mean, or "cls" for the vector of the first token.

    Returns:
        The vectors of the texts, of shape (B, D), and the cache.
    """
    return mean_pool(x, mask) if mode == "mean" else (x[:, 0], x.shape)


def pool_backward(dy: Array, cache: Any, mode: str) -> Array:
    """Return dx, of shape (B, T, D), for dy of shape (B, D).

    Args:
        dy: The gradient.
        cache: The cache of `pool`.
        mode: As for `pool`.
    """
    if mode == "mean":
        return mean_pool_backward(dy, cache)
    dx = array_module(dy).zeros(cache, dy.dtype)
    dx[:, 0] = dy
    return dx


@cache_class
class SimilarityCache(NamedTuple):
    """The cache of SimilarityTo."""

    encoder: Any
    pool: Any
    cosine: CosineCache


class SimilarityTo(Module):
    """The cosine of the angle between the vector of a text and a given vector, that of another text.

    Shapes: ids (B, T) -> similarity (B, 1).

    Args:
        model: The encoder, without a head.
        mode: The pooling, "mean" or "cls".
        vector: The given vector, of shape (D,).

    Source: Reimers and Gurevych 2019, section 3.
    """

    def __init__(self, model: Bert, mode: str, vector: Array) -> None:
        self.model, self.mode, self.vector = model, mode, vector

    @property
    def embedding(self) -> BertEmbedding:
        """The embedding of the encoder."""
        return self.model.embedding

    def forward(self, ids: Array) -> tuple[Array, SimilarityCache]:
        """Return the similarity, of shape (B, 1), and the cache. The ids, (B, T), have no padding."""
        x, encoder_cache = self.model.forward(ids)  # (B, T, D)
        y, pool_cache = pool(x, array_module(x).ones(x.shape[:2], bool), self.mode)  # (B, D)
        s, cosine_cache = cosine_similarity(y, like(self.vector, y)[None])  # (B,)
        return s[:, None], SimilarityCache(encoder_cache, pool_cache, cosine_cache)

    def backward(self, ds: Array, cache: SimilarityCache) -> None:
        """Accumulate the gradients of the encoder. Shapes: ds (B, 1)."""
        dy, _ = cosine_similarity_backward(ds[:, 0], cache.cosine)  # (B, D)
        self.model.backward(pool_backward(dy, cache.pool, self.mode), cache.encoder)
