"""Chapter 12: from vectors to tokens, and their loss."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.learn.exercises.exercise import Functions, Gradients, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import output, pairs
from npformer.mistakes.patterns import Count

TARGETS = np.array([[4, 1, 0, 0], [6, 2, 3, 0], [5, 5, 3, 2]])


def _smooth(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "smooth_targets([4, 1], 5, 0.1)": own.smooth_targets(np.array([4, 1]), 5, 0.1),
        "q of a batch": own.smooth_targets(TARGETS, 7, 0.3),
    }


def _losses(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    logits = rng.standard_normal((3, 4, 7))
    return {
        "loss": output(own.cross_entropy(logits, TARGETS)),
        "loss with padding": output(own.cross_entropy(logits, TARGETS, pad_id=0)),
        "loss of large logits": output(own.cross_entropy(1000 * logits, TARGETS)),
        "loss with pad_id 5": output(own.cross_entropy(logits, TARGETS, pad_id=5)),
    }


def _entropy_trial(label: str, **settings: Any) -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        return (F.cross_entropy, own.cross_entropy_backward), rng.standard_normal((3, 4, 7)), TARGETS

    return Gradients(label, make, settings)


def _divergence_trial(label: str, targets: Array) -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        q = F.smooth_targets(targets, 7, 0.2)
        return (
            lambda logits: F.kl_divergence(logits, q.astype(logits.real.dtype)),
            own.kl_divergence_backward,
        ), rng.standard_normal(q.shape)

    return Gradients(label, make)


LOSSES = exercises(
    r'''
=== 12 log-softmax-backward: the backward pass of the logarithm of softmax
import numpy as np


def log_softmax_backward(dy, cache):
    """Return the gradient of y_i = x_i - log(sum_j exp(x_j)) over the last axis.

    dy     the gradient of y, of shape (..., N)
    cache  the output y, which contains the logarithms of the probabilities
    Returns dx (..., N).
    """
    y = cache
    # solution
    p = np.exp(y)
    return dy - p * dy.sum(-1, keepdims=True)
--- x_j influences y_j directly. It also influences every y_i of its row, because it is part of the sum in
    the logarithm.
--- The derivative of log(sum exp(x)) with respect to x_j is the probability p_j = exp(y_j).
--- dx_j = dy_j - p_j · Σ_i dy_i, where the sum runs over the row.

=== 12 cross-entropy: the loss of a batch with padding
import numpy as np

from npformer.functional import log_softmax  # log_softmax(x) -> (log_probs, cache)


def cross_entropy(logits, targets, *, pad_id=None):
    """Return the loss, which is the mean of -log p(target) over the targets that are not pad_id.

    logits   (B, T, V)
    targets  integers (B, T)
    Returns a number. Padding counts neither in the sum nor in the number of targets. If pad_id is None,
    there is no padding.
    """
    # solution
    log_probs = log_softmax(logits)[0]
    rows, flat = log_probs.reshape(-1, log_probs.shape[-1]), targets.reshape(-1)
    losses = -rows[np.arange(len(rows)), flat]
    real = flat != pad_id if pad_id is not None else np.ones(len(flat), bool)
    return (losses * real).sum() / real.sum()
--- log_softmax returns log p of every token. You need only the entry of the target in each row.
--- rows = log_probs.reshape(-1, V). Then rows[np.arange(N), targets.reshape(-1)] selects one entry of each
    of the N rows.
--- Sum the entries whose target is not pad_id, and divide by their number. The loss is the negative of this
    mean.

=== 12 cross-entropy-backward: cross-entropy: label smoothing and padding
import numpy as np


def cross_entropy_backward(dloss, cache):
    """Return the gradient of loss = mean over the tokens of -Σ_v q_v log p_v, where p = softmax(logits).

    The mean is over the tokens that are not padding. q_v is smoothing / V, and 1 - smoothing is added to it
    if v is the target.
    dloss  the gradient of the loss, a number
    cache  .log_probs (N, V); .targets (N,); .real (N,), 1 at a token and 0 at padding; .smoothing;
           .shape, the shape of the logits, whose last number is V; .tokens, the number of tokens that are
           not padding
    Returns dlogits, with the shape cache.shape.
    """
    log_probs, targets, real, smoothing, shape, tokens = cache
    # solution
    drows = np.exp(log_probs) - smoothing / shape[-1]
    drows[np.arange(len(targets)), targets] -= 1 - smoothing
    drows = real[:, None] * drows * dloss / tokens
    return drows.reshape(shape)
--- The gradient of the loss of a single row is p - q.
--- p = exp(log_probs). Subtract smoothing / V from every entry, and 1 - smoothing from the entry of the
    target. drows[np.arange(N), targets] selects the entries of the targets.
--- Multiply by real[:, None] * dloss / tokens, because the loss is a mean over the tokens. Then reshape to
    cache.shape.

=== 12 smooth-targets: the target distribution of label smoothing
import numpy as np


def smooth_targets(targets, n_classes, smoothing):
    """Return the distribution q = (1 - smoothing) · one-hot(targets) + smoothing / n_classes.

    targets  integers (...)
    Returns q (..., n_classes) in float64. Each row sums to 1.
    """
    # solution
    one_hot = (targets[..., None] == np.arange(n_classes)).astype(float)
    return (1 - smoothing) * one_hot + smoothing / n_classes
--- Begin with the one-hot vectors. Each is a row of zeros with a 1 at the target.
--- targets[..., None] == np.arange(n_classes) is the one-hot array with dtype bool.
--- Multiply it by 1 - smoothing, and add smoothing / n_classes to every entry.

=== 12 kl-backward: the gradient of the KL divergence
import numpy as np

from npformer import functional as F  # F.log_softmax_backward(dlog_p, log_p) -> dlogits


def kl_divergence_backward(dloss, cache):
    """Return the gradient of loss = mean over rows of Σ_v q_v (log q_v - log p_v).

    log p = log_softmax(logits). q is a constant.
    dloss  the gradient of the loss, a number
    cache  .log_p (..., V), .q (..., V)
    Returns dlogits (..., V).
    """
    log_p, q = cache
    # solution
    n = q.size // q.shape[-1]
    dlog_p = -q * dloss / n
    return F.log_softmax_backward(dlog_p, log_p)
--- log q does not depend on the logits. Only the term -q_v log p_v has a gradient.
--- dlog_p = -q · dloss / n, where n is the number of rows, q.size divided by V.
--- Pass dlog_p to F.log_softmax_backward.
''',
    {
        "log-softmax-backward": pairs(F.log_softmax, ("", (4, 7)), ("x (2, 3, 7)", (2, 3, 7))),
        "cross-entropy": Task(
            F.cross_entropy,
            Values(
                "",
                _losses,
                numbers=((12, Count("12 (all targets)")), (9, Count("9 (targets that are not padding)"))),
            ),
        ),
        "cross-entropy-backward": Task(
            F.cross_entropy_backward,
            _entropy_trial(""),
            _entropy_trial("padding", pad_id=0),
            _entropy_trial("padding, smoothing 0.2", pad_id=0, smoothing=0.2),
        ),
        "smooth-targets": Task(F.smooth_targets, Values("", _smooth, hidden=hidden_inputs.smooth)),
        "kl-backward": Task(
            F.kl_divergence_backward,
            _divergence_trial("", TARGETS),
            _divergence_trial("logits (4, 7)", TARGETS[0]),
        ),
    },
)
