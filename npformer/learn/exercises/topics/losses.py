"""Lesson 12: from vectors to tokens, and their loss."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Exercise, Functions, Gradients, Values
from npformer.learn.exercises.topics.tools import output, pair_trial

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
    }


def _entropy_trial(label: str, **settings: Any) -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        return (F.cross_entropy, own.cross_entropy_backward), rng.standard_normal((3, 4, 7)), TARGETS

    return Gradients(label, make, settings)


def _divergence_trial() -> Gradients:
    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Any]:
        q = F.smooth_targets(TARGETS, 7, 0.2)
        return (
            lambda logits: F.kl_divergence(logits, q.astype(logits.real.dtype)),
            own.kl_divergence_backward,
        ), (rng.standard_normal((3, 4, 7)))

    return Gradients("", make)


LOSSES = (
    Exercise(
        "log-softmax-backward",
        12,
        "the backward pass of the logarithm of softmax",
        '''
import numpy as np


def log_softmax_backward(dy, cache):
    """The gradient of y_i = x_i - log sum_j exp(x_j), over the last axis.

    dy     the gradient of y, shape (..., N)
    cache  y itself: the logarithms of the probabilities
    Returns dx (..., N).
    """
    y = cache
''',
        (
            pair_trial("", F.log_softmax, "log_softmax_backward", (4, 7)),
            pair_trial("x (2, 3, 7)", F.log_softmax, "log_softmax_backward", (2, 3, 7)),
        ),
        (
            "x_j stands in y_j once by itself, and in every y_i of its row through the logarithm.",
            "The derivative of log sum exp(x) by x_j is the probability p_j = exp(y_j).",
            "dx_j = dy_j - p_j · the sum of dy over the row.",
        ),
        {"log_softmax_backward": F.log_softmax_backward},
    ),
    Exercise(
        "cross-entropy",
        12,
        "the loss of a batch with padding",
        '''
import numpy as np

from npformer.functional import log_softmax  # log_softmax(x) -> (log_probs, cache)


def cross_entropy(logits, targets, *, pad_id=None):
    """loss = the mean of -log p(target) over the targets that are not pad_id.

    logits   (B, T, V)
    targets  integers (B, T)
    Returns the loss, a number. Padding counts neither in the sum nor in the number of targets.
    """
''',
        (Values("", _losses, numbers=((12, "12 (all targets)"), (9, "9 (targets that are not padding)"))),),
        (
            "log_softmax gives log p of every word. Only the one at each target is needed.",
            "rows = log_probs.reshape(-1, V); rows[np.arange(N), targets.reshape(-1)] picks one a row.",
            "Add up those whose target is not pad_id, divide by how many there are, and mind the sign.",
        ),
        {"cross_entropy": F.cross_entropy},
    ),
    Exercise(
        "cross-entropy-backward",
        12,
        "cross-entropy backward, smoothed and padded",
        '''
import numpy as np


def cross_entropy_backward(dloss, cache):
    """The gradient of loss = mean over real tokens of -sum_v q_v log p_v, with p = softmax(logits).

    q is (1 - smoothing) at the target, plus smoothing / V everywhere.
    dloss  a number
    cache  .log_probs (N, V), .targets (N,), .real (N,) 1 at a token and 0 at padding, .smoothing,
           .shape (of the logits: V is its last number), .tokens (what to divide by: how many are real)
    Returns dlogits, with the shape cache.shape.
    """
    log_probs, targets, real, smoothing, shape, tokens = cache
''',
        (
            _entropy_trial(""),
            _entropy_trial("padding", pad_id=0),
            _entropy_trial("padding, smoothing 0.2", pad_id=0, smoothing=0.2),
        ),
        (
            "Before the mean, the gradient of one row is as simple as it could be: p - q.",
            "p = exp(log_probs). Subtract (1 - smoothing) at the targets and smoothing / V everywhere.",
            "Then times real[:, None] · dloss / tokens, and reshape. drows[np.arange(N), targets] is "
            "one entry a row.",
        ),
        {"cross_entropy_backward": F.cross_entropy_backward},
    ),
    Exercise(
        "smooth-targets",
        12,
        "label smoothing written out",
        '''
import numpy as np


def smooth_targets(targets, n_classes, smoothing):
    """The distribution q = (1 - smoothing) · one-hot + smoothing / n_classes.

    targets  integers (...)
    Returns q (..., n_classes), float64: rows sum to 1.
    """
''',
        (Values("", _smooth),),
        (
            "One-hot first: a row of zeros with a 1 at the target.",
            "targets[..., None] == np.arange(n_classes) is one-hot, as bool.",
            "(1 - smoothing) times that, plus smoothing / n_classes everywhere, at the target too.",
        ),
        {"smooth_targets": F.smooth_targets},
    ),
    Exercise(
        "kl-backward",
        12,
        "the gradient of Kullback-Leibler",
        '''
import numpy as np

from npformer.functional import log_softmax_backward  # log_softmax_backward(dlog_p, log_p) -> dlogits


def kl_divergence_backward(dloss, cache):
    """The gradient of loss = mean over rows of sum_v q_v (log q_v - log p_v), log p = log_softmax(logits).

    dloss  a number
    cache  .log_p (..., V), .q (..., V)
    Returns dlogits (..., V). q is given, not learned.
    """
    log_p, q = cache
''',
        (_divergence_trial(),),
        (
            "log q does not depend on the logits; only -q_v log p_v is left.",
            "dlog_p = -q · dloss / the number of rows, which is q.size over V.",
            "Then back through log_softmax.",
        ),
        {"kl_divergence_backward": F.kl_divergence_backward},
    ),
)
