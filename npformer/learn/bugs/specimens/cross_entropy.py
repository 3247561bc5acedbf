"""A specimen with a bug: cross-entropy."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import log_softmax


class CrossEntropyCache(NamedTuple):
    """The cache of cross_entropy."""

    log_probs: Any  # (N, V)
    targets: Any  # (N,)
    real: Any  # (N,) 1 at a token, 0 at padding
    shape: tuple  # of the logits


def cross_entropy(logits, targets, *, pad_id=0):
    """loss = mean over real tokens of -log p_target, with p = softmax(logits), without padding.

    Shapes: logits (..., V), targets (...) integers -> loss (). Returns (loss, cache).
    """
    targets = targets.reshape(-1)  # (N,)
    log_probs, _ = log_softmax(logits.reshape(-1, logits.shape[-1]))  # (N, V)
    real = (targets != pad_id).astype(log_probs.real.dtype)  # (N,)
    losses = -log_probs[np.arange(len(targets)), targets]  # (N,)
    loss = (losses * real).sum() / real.sum()
    return loss, CrossEntropyCache(log_probs, targets, real, logits.shape)


def cross_entropy_backward(dloss, cache):
    """dlogits = dloss (p - one_hot(target)) / tokens at the real tokens, 0 at padding."""
    log_probs, targets, real, shape = cache
    # -log p_target: its gradient is p, less 1 at the target
    drows = np.exp(log_probs)  # (N, V)
    drows[np.arange(len(targets)), targets] -= 1
    # loss = mean over the tokens
    drows = drows * (real[:, None] * (dloss / len(real)))
    return drows.reshape(shape)
