"""From the vectors of tokens to one vector for a text, and the similarity of two such vectors."""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class MeanPoolCache(NamedTuple):
    """The cache of mean_pool."""

    shares: Array  # (B, T) the share of each token in the mean, 0 where the mask is False


@sums_in_float32
def mean_pool(x: Array, mask: Array) -> tuple[Array, MeanPoolCache]:
    """Compute y_b = Σ_t mask_bt x_bt / Σ_t mask_bt, the mean of the vectors of the tokens of each text.

    Args:
        x: The vectors, of shape (B, T, D).
        mask: Bool, of shape (B, T), True at least once in each row.

    Returns:
        y, of shape (B, D), and the cache.

    Source: Reimers and Gurevych 2019, section 3.
    """
    shares = mask.astype(x.real.dtype)  # (B, T)
    shares = shares / shares.sum(-1, keepdims=True)
    return (shares[:, None, :] @ x)[:, 0], MeanPoolCache(shares)


@sums_in_float32
def mean_pool_backward(dy: Array, cache: MeanPoolCache) -> Array:
    """Return dx, of shape (B, T, D), for dy of shape (B, D)."""
    (shares,) = cache
    # y = Σ_t share_t x_t: each token gets its share of the gradient
    dx: Array = shares[:, :, None] * dy[:, None, :]
    return dx


@cache_class
class CosineCache(NamedTuple):
    """The cache of cosine_similarity."""

    a: Array  # (..., D)
    b: Array
    a_norm: Array  # (..., 1) |a|
    b_norm: Array
    s: Array  # (..., 1) the similarity


@sums_in_float32
def cosine_similarity(a: Array, b: Array) -> tuple[Array, CosineCache]:
    """Compute s = a · b / (|a| |b|), the cosine of the angle between two vectors.

    Shapes: a (..., D), b (..., D) -> s (...).

    Source: Reimers and Gurevych 2019, section 3.
    """
    xp = array_module(a)
    # without conjugates, so that a complex step is possible
    a_norm = xp.sqrt((a * a).sum(-1, keepdims=True))  # (..., 1)
    b_norm = xp.sqrt((b * b).sum(-1, keepdims=True))
    s = (a * b).sum(-1, keepdims=True) / (a_norm * b_norm)
    return s[..., 0], CosineCache(a, b, a_norm, b_norm, s)


@sums_in_float32
def cosine_similarity_backward(ds: Array, cache: CosineCache) -> tuple[Array, Array]:
    """Return da and db, of shape (..., D), for ds of shape (...)."""
    a, b, a_norm, b_norm, s = cache
    ds = ds[..., None]  # (..., 1)
    # s = (a / |a|) · (b / |b|), and the length of a direction stays 1: only the part of the other direction
    # that is perpendicular to the own one counts
    da = ds * (b / b_norm - s * a / a_norm) / a_norm
    db = ds * (a / a_norm - s * b / b_norm) / b_norm
    return da, db
