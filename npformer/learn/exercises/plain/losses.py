"""Chapter 12: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import log_softmax
from npformer.functional import log_softmax_backward as log_softmax_backward_
from npformer.learn.exercises.plain.registry import mistake, plain

GRADIENT = "dy - p * dy.sum(-1, keepdims=True)"
MEAN = "(losses * real).sum() / real.sum()"
HIT = "drows[np.arange(len(targets)), targets] -= 1 - smoothing"
MIXED = "(1 - smoothing) * one_hot + smoothing / n_classes"


@plain(
    "log-softmax-backward",
    mistake(
        "it is the backward pass of softmax: that of log-softmax is another one",
        GRADIENT,
        "p * (dy - (p * dy).sum(-1, keepdims=True))",
    ),
    mistake("it is dy itself: the term with the sum over the row is left out", GRADIENT, "dy"),
    mistake("the sum runs over the wrong axis: over axis 0 instead of the last one", "sum(-1", "sum(0"),
    mistake(
        "the sum runs over the wrong axis: over the last axis but one instead of the last one",
        "sum(-1",
        "sum(-2",
    ),
    mistake("one sum is used for all rows: compute the sum of each row", "sum(-1, keepdims=True)", "sum()"),
    mistake("exp is left out: y holds logarithms, and the probabilities are needed", "np.exp(y)", "y"),
    mistake(
        "dy is multiplied by p inside the sum: the factor p belongs in front of the sum only",
        "dy.sum",
        "(p * dy).sum",
    ),
    mistake("the sign is wrong", GRADIENT, "p * dy.sum(-1, keepdims=True) - dy"),
    mistake("the sign of the term with the sum is wrong", "dy - p", "dy + p"),
    mistake("dy is averaged over the row instead of summed", "dy.sum", "dy.mean"),
    mistake("the factor p = exp(y) of the sum is left out", "p * dy.sum", "dy.sum"),
)
def log_softmax_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of the logarithm of softmax."""
    y = cache
    p = np.exp(y)
    return dy - p * dy.sum(-1, keepdims=True)


@plain(
    "cross-entropy",
    mistake(
        "the loss is divided by the number of all targets instead of those that are not padding",
        MEAN,
        "(losses * real).sum() / len(losses)",
    ),
    mistake(
        "the losses of padding are in the sum, although the divisor counts only the real targets",
        MEAN,
        "losses.sum() / real.sum()",
    ),
    mistake(
        "pad_id is ignored: padding counts in the sum and in the number of targets", MEAN, "losses.mean()"
    ),
    mistake("the sign is wrong: the loss is the negative of the mean logarithm", "losses = -", "losses = "),
    mistake("the loss is a sum: it is not divided by the number of targets", MEAN, "(losses * real).sum()"),
    mistake(
        "the loss is divided by the number of sentences instead of the number of targets",
        MEAN,
        "(losses * real).sum() / len(logits)",
    ),
    mistake(
        "the loss is averaged within each sentence first: a mean of the means of the sentences",
        MEAN,
        "np.mean([(a * b).sum() / b.sum() for a, b in zip(losses.reshape(targets.shape), "
        "real.reshape(targets.shape))])",
    ),
    mistake("the condition is reversed: only padding counts", "flat != pad_id", "flat == pad_id"),
    mistake("the padding id is 0 instead of pad_id", "flat != pad_id", "flat != 0"),
    mistake("the logarithm has base 2 instead of base e", MEAN, MEAN + " / np.log(2)"),
    mistake("exp is applied to the loss: this is the perplexity", MEAN, f"np.exp({MEAN})"),
    mistake("perplexity is computed, and with 2 to the power of the loss", MEAN, f"2 ** ({MEAN})"),
    mistake(
        "the log-probability of the most probable token is used instead of that of the target",
        "rows[np.arange(len(rows)), flat]",
        "rows.max(-1)",
    ),
    mistake(
        "the probability of the target is used instead of its logarithm",
        "rows[np.arange(len(rows)), flat]",
        "np.exp(rows)[np.arange(len(rows)), flat]",
    ),
    mistake(
        "1 - p(target) is used instead of the logarithm", "losses = -rows[", "losses = 1 - np.exp(rows)["
    ),
    mistake(
        "the logits of the targets are used: log_softmax is left out", "log_softmax(logits)[0]", "logits"
    ),
)
def cross_entropy(logits: Any, targets: Any, *, pad_id: Any = None) -> Any:
    """Return the mean loss of the targets that are not padding."""
    log_probs = log_softmax(logits)[0]
    rows, flat = log_probs.reshape(-1, log_probs.shape[-1]), targets.reshape(-1)
    losses = -rows[np.arange(len(rows)), flat]
    real = flat != pad_id if pad_id is not None else np.ones(len(flat), bool)
    return (losses * real).sum() / real.sum()


@plain(
    "cross-entropy-backward",
    mistake("it is not divided by the number of tokens: the loss is averaged over them", " / tokens", ""),
    mistake(
        "it is divided by the number of all targets instead of tokens, those that are not padding",
        " / tokens",
        " / len(targets)",
    ),
    mistake(
        "it is divided by the number of sentences instead of the number of tokens", " / tokens", " / shape[0]"
    ),
    mistake("it is divided by tokens twice", " / tokens", " / tokens**2"),
    mistake("it is multiplied by tokens instead of divided", " / tokens", " * tokens"),
    mistake(
        "padding gets a gradient: the factor real is left out, and the rows of padding should be 0",
        "real[:, None] * ",
        "",
    ),
    mistake("1 instead of 1 - smoothing is subtracted at the target", "-= 1 - smoothing", "-= 1"),
    mistake(
        "the target is counted twice: with smoothing, only 1 - smoothing is subtracted at it in "
        "addition to smoothing / V",
        "-= 1 - smoothing",
        "-= 1 - smoothing / shape[-1]",
    ),
    mistake("smoothing / V is not subtracted from the entries", " - smoothing / shape[-1]", ""),
    mistake("label smoothing is left out", " - smoothing / shape[-1]", "", "-= 1 - smoothing", "-= 1"),
    mistake(
        "smoothing is divided by V - 1, the number of the other tokens, instead of V",
        "smoothing / shape[-1]",
        "smoothing / (shape[-1] - 1)",
    ),
    mistake("smoothing is not divided by V", "smoothing / shape[-1]", "smoothing"),
    mistake("the factor dloss is left out", " * dloss", ""),
    mistake("the sign is wrong: the gradient is p - q, and not q - p", "return drows", "return -drows"),
    mistake("exp is left out: p = exp(log_probs)", "np.exp(log_probs)", "log_probs"),
    mistake("nothing is subtracted at the targets", HIT, "pass"),
    mistake(
        "1 - smoothing is subtracted from every entry of the row instead of the target only",
        HIT,
        "drows -= 1 - smoothing",
    ),
    mistake(
        "1 - smoothing is added at the target instead of subtracted: the sign is wrong", "-= 1 -", "+= 1 -"
    ),
)
def cross_entropy_backward(dloss: Any, cache: Any) -> Any:
    """Return the gradient of the loss with label smoothing and padding."""
    log_probs, targets, real, smoothing, shape, tokens = cache
    drows = np.exp(log_probs) - smoothing / shape[-1]
    drows[np.arange(len(targets)), targets] -= 1 - smoothing
    drows = real[:, None] * drows * dloss / tokens
    return drows.reshape(shape)


@plain(
    "smooth-targets",
    mistake(
        "the target gets 1 - smoothing only, and the other classes smoothing / (n_classes - 1): here "
        "each class, the target too, gets smoothing / n_classes",
        MIXED,
        "np.where(one_hot, 1 - smoothing, smoothing / (n_classes - 1))",
    ),
    mistake(
        "the target does not get its share of smoothing / n_classes, so the row does not sum to 1",
        MIXED,
        "np.where(one_hot, 1 - smoothing, smoothing / n_classes)",
    ),
    mistake(
        "smoothing is divided by n_classes - 1 instead of n_classes",
        "smoothing / n_classes",
        "smoothing / (n_classes - 1)",
    ),
    mistake(
        "the factor 1 - smoothing is left out, so the target is counted twice and the row does not sum to 1",
        "(1 - smoothing) * one_hot",
        "one_hot",
    ),
    mistake("smoothing is not divided by n_classes", "smoothing / n_classes", "smoothing"),
    mistake("the term smoothing / n_classes is left out", " + smoothing / n_classes", ""),
    mistake(
        "smoothing and 1 - smoothing are exchanged",
        MIXED,
        "smoothing * one_hot + (1 - smoothing) / n_classes",
    ),
    mistake("the vectors are one-hot: smoothing is ignored", MIXED, "one_hot"),
)
def smooth_targets(targets: Any, n_classes: Any, smoothing: Any) -> Any:
    """Return the target distributions of label smoothing."""
    one_hot = (targets[..., None] == np.arange(n_classes)).astype(float)
    return (1 - smoothing) * one_hot + smoothing / n_classes


@plain(
    "kl-backward",
    mistake("the sign is wrong: log p has a minus sign in the loss", "-q *", "q *"),
    mistake("it is not divided by the number of rows: the loss is averaged over them", " / n\n", "\n"),
    mistake(
        "it is divided by the number of all entries, q.size, instead of the number of rows",
        "q.size // q.shape[-1]",
        "q.size",
    ),
    mistake(
        "it is divided by the length of axis 0, the batch, instead of the number of rows",
        "q.size // q.shape[-1]",
        "len(q)",
    ),
    mistake(
        "it is divided by V, the number of classes, instead of the number of rows",
        "q.size // q.shape[-1]",
        "q.shape[-1]",
    ),
    mistake("p = exp(log_p) is used instead of q", "-q *", "-np.exp(log_p) *"),
    mistake("log_softmax_backward is left out", "log_softmax_backward_(dlog_p, log_p)", "dlog_p"),
    mistake("the factor dloss is left out", " * dloss", ""),
    mistake(
        "the loss is used instead of its derivative: log q and log p must not occur in dlog_p, "
        "because q is a constant",
        "-q *",
        "q * (np.log(q) - log_p) *",
    ),
    mistake(
        "the loss is used instead of its derivative: log_p must not occur in dlog_p", "-q *", "-q * log_p *"
    ),
    mistake("the two arguments of log_softmax_backward are exchanged", "(dlog_p, log_p)", "(log_p, dlog_p)"),
    mistake("the factor q is left out", "-q * dloss", "-np.ones_like(q) * dloss"),
)
def kl_divergence_backward(dloss: Any, cache: Any) -> Any:
    """Return the gradient of the KL divergence."""
    log_p, q = cache
    n = q.size // q.shape[-1]
    dlog_p = -q * dloss / n
    return log_softmax_backward_(dlog_p, log_p)
