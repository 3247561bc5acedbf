"""Cross-entropy whose gradient is made on the way forward, where the logits were."""

import math

from npformer.backend import array_module, fused
from npformer.kernels.shared import GradientCache, as_rows


@fused
def row_max(xp, x):
    """The largest number of each row. Shapes: x (N, V) -> (N,)."""
    return xp.max(x, axis=-1)


@fused
def row_log_total(xp, x, peak):
    """log sum_v exp(x_v - peak). Shapes: x (N, V), peak (N, 1) -> (N,)."""
    return xp.log(xp.sum(xp.exp(x - peak), axis=-1))


@fused
def row_total(xp, x, peak):
    """sum_v (x_v - peak). Shapes: x (N, V), peak (N, 1) -> (N,)."""
    return xp.sum(x - peak, axis=-1)


@fused
def to_gradient(xp, x, words, targets, peak, log_total, share, at_target, everywhere):
    """Put share (p - q) where the logits were, q being at_target more at the target than everywhere.

    The target is found by comparing: every word of a row asks whether it is the one.
    Shapes: x (N, V), words (V,) 0 to V - 1; targets, peak, log_total and share (N, 1).
    """
    difference = xp.exp(x - peak - log_total) - everywhere
    x[...] = share * xp.where(words == targets, difference - at_target, difference)


@fused
def row_loss(xp, log_total, score, total, is_right, share, at_target, everywhere):
    """share (log_total - sum_v q_v (x_v - peak)), NaN for a target outside the vocabulary. Shapes: (N,).

    score is x_v - peak at the target, total its sum over v, or None where q is 0 but at the target.
    """
    loss = log_total - score * at_target
    if total is not None:
        loss = loss - total * everywhere
    return xp.where(is_right, loss, math.nan) * share


def cross_entropy(logits, targets, *, smoothing=0.0, pad_id=None, tokens=None, overwrite=False):
    """The plain pair's loss. overwrite=True puts the gradient where the logits were: one large array less.

    Nothing here waits for the GPU. So a target outside the vocabulary, an error in the plain pair, makes the
    loss NaN instead: whoever reads the loss, as a training step does, learns of it there.
    """
    xp = array_module(logits)
    n_words = logits.shape[-1]
    rows = as_rows(logits if overwrite else logits.copy())  # (N, V)
    targets = targets.reshape(-1)  # (N,)
    is_real = targets != pad_id if pad_id is not None else xp.ones(targets.shape, bool)
    is_right = ~is_real | ((targets >= 0) & (targets < n_words))
    tokens = xp.maximum(is_real.sum(), 1) if tokens is None else tokens
    share = (is_real / tokens).astype(rows.dtype)  # (N,) of each row in the loss
    settings = 1 - smoothing, smoothing / n_words  # what q is at the target and, besides, everywhere
    peak = row_max(rows)[:, None]  # (N, 1)
    log_total = row_log_total(rows, peak)  # (N,)
    score = rows[xp.arange(len(rows)), targets] - peak[:, 0]  # (N,) a wrong index wraps around
    total = row_total(rows, peak) if smoothing else None  # (N,)
    losses = row_loss(log_total, score, total, is_right, share, *settings)  # (N,)
    columns = (column[:, None] for column in (targets, peak[:, 0], log_total, share))  # (N, 1) each
    to_gradient(rows, xp.arange(n_words), *columns, *settings)
    return losses.sum(), GradientCache(rows.reshape(logits.shape), tokens)


def cross_entropy_backward(dloss, cache):
    """dlogits = dloss (p - q) / tokens at the real tokens, 0 at padding."""
    if isinstance(dloss, (int, float)) and dloss == 1:  # asking an array would wait for the GPU
        return cache.dlogits
    return cache.dlogits * dloss
