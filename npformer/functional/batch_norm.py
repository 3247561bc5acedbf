"""Batch normalization: Ioffe and Szegedy 2015, algorithm 1.

Layer normalization computes mean and variance over the D numbers of each token. Batch normalization computes
them for each of the D numbers over all tokens of the batch. So the output of a token depends on the other
sentences of the batch, on their number and, in a decoder, on later tokens. That is why Transformers use layer
normalization.
"""

from typing import Any, NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32
from npformer.functional.masks import check_token_mask


class Statistics(NamedTuple):
    """The mean and the variance of each of the D numbers.

    The variance of a batch is the biased one, the mean of the squares. The running variance of a layer is an
    average of unbiased ones.
    """

    mean: Array  # (D,)
    variance: Array  # (D,)


@cache_class
class BatchNormCache(NamedTuple):
    """The cache of batch_norm. The layer also updates its running statistics from it."""

    xhat: Array  # (..., D) the input with mean 0 and variance 1 over the tokens of the batch
    rstd: Array  # (D,) one over the standard deviation
    gain: Array  # (D,)
    share: Array | None  # (..., 1) 1/N at the N tokens, 0 at padding; None if the statistics were given
    statistics: Statistics


@sums_in_float32
def batch_norm(
    x: Array,
    gain: Array,
    bias: Array,
    eps: float = 1e-5,
    *,
    mask: Array | None = None,
    statistics: Statistics | None = None,
) -> tuple[Array, BatchNormCache]:
    """Compute y = gain xhat + bias, with xhat = (x - mean) / sqrt(variance + eps) over all tokens of a batch.

    Args:
        x: The input, of shape (..., D).
        gain: The scale of each number, of shape (D,).
        bias: The shift of each number, of shape (D,).
        eps: A small number that prevents a division by zero.
        mask: Bool, of shape (...). True marks a token. Padding does not count in the statistics, but it is
            normalized like a token.
        statistics: Statistics that replace those of the batch, such as the running statistics of a layer.

    Returns:
        y, of shape (..., D), and the cache.

    Raises:
        UserError: If the mask has another dtype or shape.

    Source: Ioffe and Szegedy 2015, algorithm 1.
    """
    xp = array_module(x)
    check_token_mask(mask, x)
    share = _share(x, mask) if statistics is None else None
    mean, variance = _statistics(x, share) if statistics is None else statistics
    rstd = 1 / xp.sqrt(variance + eps)  # (D,)
    xhat = (x - mean) * rstd  # (..., D)
    return gain * xhat + bias, BatchNormCache(xhat, rstd, gain, share, Statistics(mean, variance))


@sums_in_float32
def batch_norm_backward(dy: Array, cache: BatchNormCache) -> tuple[Array, Array, Array]:
    """Return the gradients dx (..., D), dgain (D,) and dbias (D,) of y = gain xhat + bias."""
    xhat, rstd, gain, share, _ = cache
    rows = tuple(range(dy.ndim - 1))  # all axes except the last: every row used the same gain and bias
    # y = gain xhat + bias
    dbias = dy.sum(rows)  # (D,)
    dgain = (dy * xhat).sum(rows)  # (D,)
    dxhat = dy * gain  # (..., D)
    # xhat = (x - mean) rstd. If mean and variance were given, they do not depend on x
    if share is None:
        return dxhat * rstd, dgain, dbias
    # otherwise mean = sum share x and variance = sum share (x - mean)^2. Through them every token affects
    # every output, also the outputs at padding. An input at padding affects only its own output
    along = (dxhat * xhat).sum(rows)  # (D,)
    dx = rstd * (dxhat - share * (dxhat.sum(rows) + xhat * along))
    return dx, dgain, dbias


def _share(x: Array, mask: Array | None) -> Array:
    """Return 1/N at each of the N tokens and 0 at padding. Shapes: x (..., D), mask (...) -> (..., 1)."""
    xp = array_module(x)
    tokens = xp.ones(x.shape[:-1], x.real.dtype)
    if mask is not None:
        tokens = tokens * mask
    return (tokens / xp.maximum(tokens.sum(), 1))[..., None]


def _statistics(x: Array, share: Any) -> Statistics:
    """Return the mean and the biased variance over the tokens."""
    rows = tuple(range(x.ndim - 1))
    mean = (share * x).sum(rows)  # (D,)
    centered = x - mean  # (..., D)
    return Statistics(mean, (share * centered * centered).sum(rows))
