"""The steps of the loss: the cross-entropy of the logits and the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.explorer.steps.recording import Recording
from npformer.functional.losses import cross_entropy, cross_entropy_backward


def record_loss(recording: Recording, logits: Array, targets: Array, settings: dict[str, Any]) -> float:
    """Add the steps of the cross-entropy, and return the loss.

    Args:
        recording: The recording, with the step of the logits.
        logits: The logits, of shape (1, T, V).
        targets: The target ids, of shape (1, T).
        settings: The settings smoothing and pad_id of cross_entropy.
    """
    loss, cache = cross_entropy(logits, targets, **settings)
    columns = slice(None) if recording.columns is None else recording.columns
    is_whole = recording.columns is None
    x = recording.step_of(logits)
    assert x is not None
    recording.alias("logits", x)
    real, smoothing = cache.real, cache.smoothing
    n_tokens = logits.shape[-1]
    dlosses = real / cache.tokens  # (T,)
    dlog_probs = np.full(cache.log_probs.shape, -smoothing / n_tokens)
    dlog_probs[np.arange(len(dlosses)), cache.targets] -= 1 - smoothing
    dlog_probs *= dlosses[:, None]
    shown = cache.log_probs[:, columns][None], dlog_probs[:, columns][None]
    note = {} if is_whole else _note_of_rows(recording, logits[0], dlog_probs)
    step = recording.record("log_softmax", "loss.log_probs", *shown, [x], note)
    at_target = cache.log_probs[np.arange(len(dlosses)), cache.targets]
    losses = -(1 - smoothing) * at_target - smoothing * cache.log_probs.mean(-1)
    note = {"targets": cache.targets.tolist(), "smoothing": smoothing}
    if recording.columns is not None:
        note["targets"] = np.searchsorted(recording.columns, cache.targets).tolist()
        note |= {"means": cache.log_probs.mean(-1).tolist(), "vocabularySize": n_tokens}
    step = recording.record("losses", "loss.losses", losses, dlosses, [step], note, squeeze=False)
    note = {"real": (real > 0).tolist(), "tokens": cache.tokens}
    recording.record("cross_entropy", "loss", np.array(loss), np.ones(()), [step], note, squeeze=False)
    return float(loss)


def _note_of_rows(recording: Recording, logits: Array, dlog_probs: Array) -> dict[str, Any]:
    """Return what the log-softmax takes from whole rows, (T, V), of which the page carries some columns."""
    assert recording.columns is not None
    peaks = logits.max(-1)
    return {
        "token_ids": recording.columns.tolist(),
        "peaks": peaks.tolist(),
        "totals": np.exp(logits - peaks[:, None]).sum(-1).tolist(),
        "sums": dlog_probs.sum(-1).tolist(),
    }


def loss_gradient(logits: Array, targets: Array, settings: dict[str, Any]) -> Array:
    """Return the gradient of the cross-entropy with respect to the logits, of their shape.

    Args:
        logits: The logits, of shape (1, T, V).
        targets: The target ids, of shape (1, T).
        settings: The settings smoothing and pad_id of cross_entropy.
    """
    _, cache = cross_entropy(logits, targets, **settings)
    return cross_entropy_backward(1.0, cache)
