"""Cross-entropy whose gradient is made on the way forward, while a row's probabilities are at hand."""

import numpy as np

from npformer.functional.losses import check_targets
from npformer.kernels.cpu.attention import SAFE
from npformer.kernels.cpu.blocks import blocks, row_sums
from npformer.kernels.shared import GradientCache, as_rows


def cross_entropy(logits, targets, *, smoothing=0.0, pad_id=None, tokens=None, overwrite=False):
    """The plain pair's loss. overwrite=True puts the gradient where the logits were: one large array less."""
    rows, targets = as_rows(logits), targets.reshape(-1)  # (N, V), (N,)
    is_real = targets != pad_id if pad_id is not None else np.ones(targets.shape, bool)
    check_targets(targets, is_real, rows.shape[-1])
    targets = np.where(is_real, targets, 0)
    tokens = max(1, int(is_real.sum())) if tokens is None else tokens
    share = is_real.astype(rows.dtype) / tokens  # (N,) of each row in the loss
    drows = rows if overwrite else np.empty_like(rows)
    loss = 0.0
    for block in blocks(*rows.shape):
        losses = _row_losses(rows[block], drows[block], targets[block], share[block], smoothing)
        loss += float((losses * share[block]).sum(dtype=np.float64))
    return rows.dtype.type(loss), GradientCache(drows.reshape(logits.shape), tokens)


def _row_losses(x, dx, targets, share, smoothing):
    """The loss of each row of x (n, V); dx, which may be x, gets the gradient of share · loss."""
    n_words = x.shape[-1]
    at_target = np.arange(len(x)), targets
    if x.max() < SAFE and x.min() > -SAFE:
        peak = np.zeros(len(x), x.dtype)
    else:
        peak = x.max(-1)
        x = np.subtract(x, peak[:, None], out=dx)
    scores, mean = x[at_target], row_sums(x) / n_words
    np.exp(x, out=dx)
    total = row_sums(dx)
    log_total = np.log(total)
    # dlogits = share (p - q), with q = smoothing / V everywhere and 1 - smoothing more at the target
    dx *= (share / total)[:, None]
    if smoothing:
        dx -= (share * (smoothing / n_words))[:, None]
    dx[at_target] -= share * (1 - smoothing)
    return log_total - (1 - smoothing) * scores - smoothing * mean


def cross_entropy_backward(dloss, cache):
    """dlogits = dloss (p - q) / tokens at the real tokens, 0 at padding."""
    return cache.dlogits if dloss == 1 else cache.dlogits * dloss
