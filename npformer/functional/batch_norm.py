"""Batch normalization, the contrast to layer normalization: Ioffe and Szegedy 2015, algorithm 1.

Layer norm measures a word by its own numbers, batch norm each number by all words of the batch. So under
batch norm a word's output depends on its company: on the other sentences, on how many there are and, in a
decoder, on the words that come later. That is why Transformers use layer norm.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.functional.masking import check_words


class Statistics(NamedTuple):
    """By what vectors are normalized, each of their D numbers by its own."""

    mean: Any  # (D,)
    variance: Any  # (D,) the biased one: the mean of the squares


class BatchNormCache(NamedTuple):
    """What batch_norm_backward needs, and the statistics that the layer's running ones move towards."""

    xhat: Any  # (..., D) the input with mean 0 and variance 1 over the words of the batch
    rstd: Any  # (D,) one over the standard deviation
    gain: Any  # (D,)
    share: Any  # (..., 1) how much of the mean each row is: 1/N at the N words, 0 at padding; None if given
    statistics: Statistics


def batch_norm(x, gain, bias, eps=1e-5, *, mask=None, given=None):
    """y = gain xhat + bias, with xhat = (x - mean) / sqrt(variance + eps), both over all words of the batch.

    mask is True at the words; padding counts in neither statistic, and is normalized like a word.
    given: Statistics to take instead of the batch's own, such as a layer's running ones.
    Shapes: x (..., D), gain and bias (D,), mask (...) bool -> y (..., D).
    Errors: UserError for a mask of another dtype or shape.
    """
    xp = array_module(x)
    check_words(mask, x)
    share = _share(x, mask) if given is None else None
    mean, variance = _measure(x, share) if given is None else given
    rstd = 1 / xp.sqrt(variance + eps)  # (D,)
    xhat = (x - mean) * rstd  # (..., D)
    return gain * xhat + bias, BatchNormCache(xhat, rstd, gain, share, Statistics(mean, variance))


def batch_norm_backward(dy, cache):
    """Gradients (dx, dgain, dbias) of y = gain xhat + bias."""
    xhat, rstd, gain, share, _ = cache
    rows = tuple(range(dy.ndim - 1))  # every axis but the last: gain and bias reached each row
    # y = gain xhat + bias
    dbias = dy.sum(rows)  # (D,)
    dgain = (dy * xhat).sum(rows)  # (D,)
    dxhat = dy * gain  # (..., D)
    # xhat = (x - mean) rstd, mean and variance given
    if share is None:
        return dxhat * rstd, dgain, dbias
    # mean = sum share x and variance = sum share (x - mean)^2: by them every word has a part in every
    # output, padding's too, and padding has a part in its own alone
    along = (dxhat * xhat).sum(rows)  # (D,)
    dx = rstd * (dxhat - share * (dxhat.sum(rows) + xhat * along))
    return dx, dgain, dbias


def _share(x, mask):
    """1/N at each of the N words and 0 at padding. Shapes: x (..., D), mask (...) -> (..., 1)."""
    xp = array_module(x)
    words = xp.ones(x.shape[:-1], x.real.dtype)
    if mask is not None:
        words = words * mask
    return (words / xp.maximum(words.sum(), 1))[..., None]


def _measure(x, share):
    """The mean and the biased variance of the words."""
    rows = tuple(range(x.ndim - 1))
    mean = (share * x).sum(rows)  # (D,)
    centered = x - mean  # (..., D)
    return Statistics(mean, (share * centered * centered).sum(rows))
