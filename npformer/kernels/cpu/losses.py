"""Cross-entropy, block by block. The forward pass also computes the gradient."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.losses import check_target_shape, check_targets
from npformer.kernels import shared
from npformer.kernels.choice import backward_of
from npformer.kernels.cpu.block_attention import SAFE
from npformer.kernels.cpu.blocks import blocks, row_sums
from npformer.kernels.shared import as_rows


class GradientCache(shared.GradientCache):
    """The cache of this cross_entropy."""

    __slots__ = ()


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
        UserError: If the shapes do not fit, or a target that counts is outside [0, V).
    """
    check_target_shape(logits, targets)
    rows, targets = as_rows(logits), targets.reshape(-1)  # (N, V), (N,)
    is_token = targets != pad_id if pad_id is not None else np.ones(targets.shape, bool)
    check_targets(targets, is_token, rows.shape[-1])
    targets = np.where(is_token, targets, 0)
    tokens = max(1, int(is_token.sum())) if tokens is None else tokens
    share = is_token.astype(rows.dtype) / tokens  # (N,) the factor of each row in the loss
    drows = rows if overwrite else np.empty_like(rows)
    loss = 0.0
    for block in blocks(*rows.shape):
        losses = _row_losses(rows[block], drows[block], targets[block], share[block], smoothing)
        loss += float((np.where(is_token[block], losses, 0) * share[block]).sum(dtype=np.float64))
    return rows.dtype.type(loss), GradientCache(drows.reshape(logits.shape))


def _row_losses(x: Array, dx: Array, targets: Array, share: Array, smoothing: float) -> Array:
    """Return the loss of each row of the logits x (n, V), and write the gradient of share · loss to dx.

    dx may be the same array as x, which is then overwritten.
    """
    vocab_size = x.shape[-1]
    at_target = np.arange(len(x)), targets
    if x.max() < SAFE and x.min() > -SAFE:
        peak = np.zeros(len(x), x.dtype)
    else:
        peak = x.max(-1)
        x = np.subtract(x, peak[:, None], out=dx)
    # 0 log 0 is 0: without smoothing, a token whose logit is -inf has no part in the loss
    scores, mean = x[at_target], row_sums(x) / vocab_size if smoothing else 0.0
    np.exp(x, out=dx)
    total = row_sums(dx)
    log_total = np.log(total)
    # dlogits = share (p - q), where q is smoothing / V at every token, plus 1 - smoothing at the target
    dx *= (share / total)[:, None]
    if smoothing:
        dx -= (share * (smoothing / vocab_size))[:, None]
    dx[at_target] -= share * (1 - smoothing)
    return log_total - (1 - smoothing) * scores - smoothing * mean


def cross_entropy_in_place(logits: Array, targets: Array, **settings: Any) -> tuple[Array, GradientCache]:
    """Compute cross_entropy and overwrite the logits with the gradient, which saves one large array."""
    return cross_entropy(logits, targets, overwrite=True, **settings)


@backward_of(GradientCache)
def cross_entropy_backward(dloss: float | Array, cache: GradientCache) -> Array:
    """Return dlogits, of shape (..., V): dloss (p - q) / tokens at tokens, and 0 at padding."""
    return cache.dlogits if dloss == 1 else cache.dlogits * dloss
