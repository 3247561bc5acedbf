"""Cross-entropy on a GPU. The forward pass also computes the gradient and overwrites the logits with it."""

import math
from typing import Any

from npformer.backend import Array, array_module, fused
from npformer.functional.losses import check_target_shape
from npformer.kernels import shared
from npformer.kernels.choice import backward_of
from npformer.kernels.shared import as_rows


class GradientCache(shared.GradientCache):
    """The cache of this cross_entropy."""

    __slots__ = ()


@fused
def row_max(xp: Any, x: Array) -> Array:
    """Return the largest number of each row. Shapes: x (N, V) -> (N,)."""
    return xp.max(x, axis=-1)


@fused
def row_log_total(xp: Any, x: Array, peak: Array) -> Array:
    """Return log Σ_v exp(x_v - peak) of each row.

    Args:
        xp: The array module.
        x: The logits, of shape (N, V).
        peak: The largest logit of each row, of shape (N, 1).

    Returns:
        An array of shape (N,).
    """
    return xp.log(xp.sum(xp.exp(x - peak), axis=-1))


@fused
def row_total(xp: Any, x: Array, peak: Array) -> Array:
    """Return Σ_v (x_v - peak) of each row.

    Args:
        xp: The array module.
        x: The logits, of shape (N, V).
        peak: The largest logit of each row, of shape (N, 1).

    Returns:
        An array of shape (N,).
    """
    return xp.sum(x - peak, axis=-1)


@fused
def to_gradient(
    xp: Any,
    x: Array,
    classes: Array,
    targets: Array,
    peak: Array,
    log_total: Array,
    share: Array,
    at_target: float,
    everywhere: float,
) -> None:
    """Overwrite the logits with share (p - q), where q is `everywhere`, plus `at_target` at the target.

    Args:
        xp: The array module.
        x: The logits, of shape (N, V).
        classes: The numbers 0 to V - 1, of shape (V,). They are compared with the targets.
        targets: The right token ids, of shape (N, 1).
        peak, log_total: The largest logit and the result of row_log_total, of shape (N, 1).
        share: The factor of each row in the loss, of shape (N, 1).
        at_target, everywhere: The two parts of q.
    """
    difference = xp.exp(x - peak - log_total) - everywhere
    x[...] = share * xp.where(classes == targets, difference - at_target, difference)


@fused
def row_loss(
    xp: Any,
    log_total: Array,
    score: Array,
    total: Array | None,
    is_right: Array,
    share: Array,
    at_target: float,
    everywhere: float,
) -> Array:
    """Return share (log_total - Σ_v q_v (x_v - peak)) of each row.

    Args:
        xp: The array module.
        log_total: The result of row_log_total, of shape (N,).
        score: x_v - peak at the target, of shape (N,).
        total: The sum of x_v - peak over v, of shape (N,), or None if `everywhere` is 0.
        is_right: Bool, of shape (N,). False for a target outside the vocabulary, which makes the loss NaN.
        share: The factor of each row in the loss, of shape (N,).
        at_target, everywhere: The two parts of q, as in to_gradient.

    Returns:
        An array of shape (N,).
    """
    loss = log_total - score * at_target
    if total is not None:
        loss = loss - total * everywhere
    return xp.where(share == 0, 0, xp.where(is_right, loss, math.nan) * share)


def cross_entropy(
    logits: Array,
    targets: Array,
    *,
    smoothing: float = 0.0,
    pad_id: int | None = None,
    tokens: int | None = None,
    overwrite: bool = False,
) -> tuple[Array, GradientCache]:
    """Compute the loss as npformer.functional.cross_entropy does, and the gradient of the logits.

    The function does not wait for the GPU, so it cannot raise an error that depends on the ids in targets. An
    id outside the vocabulary, for which the plain pair raises an error, makes the loss NaN instead. The
    training step checks for NaN when it reads the loss.

    Args:
        logits: The scores of all tokens of the vocabulary, of shape (..., V).
        targets: The right token ids, of shape (...).
        smoothing: The amount of label smoothing, ε_ls in Vaswani et al. 2017, from 0 to 1.
        pad_id: The id of padding, which does not count.
        tokens: The number by which the sum of the losses is divided.
        overwrite: Overwrite the logits with the gradient, which saves one large array.

    Returns:
        The loss, of shape (), and the cache, which holds the gradient.

    Raises:
        UserError: If the shapes do not fit.
    """
    xp = array_module(logits)
    check_target_shape(logits, targets)
    vocab_size = logits.shape[-1]
    rows = as_rows(logits if overwrite else logits.copy())  # (N, V)
    targets = targets.reshape(-1)  # (N,)
    is_token = targets != pad_id if pad_id is not None else xp.ones(targets.shape, bool)
    is_right = ~is_token | ((targets >= 0) & (targets < vocab_size))
    tokens = xp.maximum(is_token.sum(), 1) if tokens is None else tokens
    share = (is_token / tokens).astype(rows.dtype)  # (N,) the factor of each row in the loss
    settings = 1 - smoothing, smoothing / vocab_size  # at_target and everywhere
    peak = row_max(rows)[:, None]  # (N, 1)
    log_total = row_log_total(rows, peak)  # (N,)
    score = rows[xp.arange(len(rows)), targets] - peak[:, 0]  # (N,) CuPy raises no error for a wrong index
    total = row_total(rows, peak) if smoothing else None  # (N,)
    losses = row_loss(log_total, score, total, is_right, share, *settings)  # (N,)
    columns = (x[:, None] for x in (targets, peak[:, 0], log_total, share))  # each (N, 1)
    to_gradient(rows, xp.arange(vocab_size), *columns, *settings)
    return losses.sum(), GradientCache(rows.reshape(logits.shape))


def cross_entropy_in_place(logits: Array, targets: Array, **settings: Any) -> tuple[Array, GradientCache]:
    """Compute cross_entropy and overwrite the logits with the gradient, which saves one large array."""
    return cross_entropy(logits, targets, overwrite=True, **settings)


@backward_of(GradientCache)
def cross_entropy_backward(dloss: float | Array, cache: GradientCache) -> Array:
    """Return dlogits, of shape (..., V): dloss (p - q) / tokens at tokens, and 0 at padding."""
    if isinstance(dloss, (int, float)) and dloss == 1:  # a comparison with an array would wait for the GPU
        return cache.dlogits
    return cache.dlogits * dloss
