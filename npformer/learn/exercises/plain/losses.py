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
    mistake(
        "p - dy is the gradient of a cross-entropy: here dy is the gradient of log-softmax",
        GRADIENT,
        "p - dy",
    ),
    mistake(
        "only the diagonal of the Jacobian is used: the other entries of the row depend on x_j too",
        GRADIENT,
        "dy * (1 - p)",
    ),
    mistake(
        "the sum of dy is taken to be 1: p must be multiplied by the sum of dy over the row",
        GRADIENT,
        "dy - p",
    ),
    mistake(
        "the factor dy is left out in the first term: it is 1 - p times the sum",
        GRADIENT,
        "1 - p * dy.sum(-1, keepdims=True)",
    ),
    mistake(
        "only the logarithm is differentiated: the backward pass of the softmax is missing",
        GRADIENT,
        "dy / p",
    ),
    mistake("dy is multiplied by p in both terms", GRADIENT, "p * (dy - dy.sum(-1, keepdims=True))"),
    mistake(
        "dx is divided by the batch size: a gradient must not be averaged here",
        GRADIENT,
        f"({GRADIENT}) / len(dy)",
    ),
    mistake(
        "the softmax is applied to p, which is the softmax of x already",
        "p = np.exp(y)",
        "p = np.exp(np.exp(y)); p = p / p.sum(-1, keepdims=True)",
    ),
    mistake("p is 1 - exp(y): it is exp(y)", "p = np.exp(y)", "p = 1 - np.exp(y)"),
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
    mistake(
        "log_softmax runs over the positions: it must run over the last axis, the tokens of the vocabulary",
        "log_softmax(logits)[0]",
        "log_softmax(logits.swapaxes(-1, -2))[0].swapaxes(-1, -2)",
    ),
    mistake(
        "log_softmax runs over the batch: it must run over the last axis, the tokens of the vocabulary",
        "log_softmax(logits)[0]",
        "log_softmax(logits.swapaxes(0, -1))[0].swapaxes(0, -1)",
    ),
    mistake(
        "the softmax is applied twice: log_softmax takes the logits",
        "log_softmax(logits)[0]",
        "log_softmax(np.exp(log_softmax(logits)[0]))[0]",
    ),
    mistake(
        "the targets are shifted by one position: targets[b, t] belongs to logits[b, t]",
        "log_probs = log_softmax(logits)[0]",
        "log_probs, targets = log_softmax(logits)[0][:, :-1], targets[:, 1:]",
    ),
    mistake(
        "the loss is also divided by the size of the vocabulary: it is a mean over the targets",
        MEAN,
        "(losses * real).sum() / real.sum() / logits.shape[-1]",
    ),
    mistake(
        "the log-probabilities of all tokens are summed: only that of the target counts",
        "-rows[np.arange(len(rows)), flat]",
        "-rows.sum(-1)",
    ),
    mistake(
        "the log-probabilities of all tokens are averaged: only that of the target counts",
        "-rows[np.arange(len(rows)), flat]",
        "-rows.mean(-1)",
    ),
    mistake(
        "the entropy of the prediction is computed: the targets are not used",
        "-rows[np.arange(len(rows)), flat]",
        "-(np.exp(rows) * rows).sum(-1)",
    ),
    mistake(
        "the term log(1 - p) of the other tokens is added, as in a binary cross-entropy",
        "losses = -rows[np.arange(len(rows)), flat]",
        "other = np.log1p(-np.exp(rows)); hit = np.arange(len(rows)), flat; losses = other[hit] - rows[hit] "
        "- other.sum(-1)",
    ),
    mistake(
        "the loss is averaged within each position of the sentences first: the mean is over all targets",
        MEAN,
        "np.mean([(a * b).sum() / max(1, b.sum()) for a, b in zip(losses.reshape(targets.shape).T, "
        "real.reshape(targets.shape).T)])",
    ),
    mistake(
        "the loss is divided by the length of the sentences: it is a mean over the targets",
        MEAN,
        "(losses * real).sum() / targets.shape[-1]",
    ),
    mistake(
        "the logarithm of the mean probability is computed: the mean of the logarithms is needed",
        MEAN,
        "-np.log((np.exp(-losses) * real).sum() / real.sum())",
    ),
    mistake("the logarithm has base 10 instead of base e", MEAN, MEAN + " / np.log(10)"),
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
        "1 - smoothing is subtracted from every entry of the row instead of the target only, as drows[:, "
        "targets] "
        "does",
        HIT,
        "drows -= 1 - smoothing",
    ),
    mistake(
        "1 - smoothing is added at the target instead of subtracted: the sign is wrong", "-= 1 -", "+= 1 -"
    ),
    mistake(
        "padding gets a gradient at its target: real is applied before 1 - smoothing is subtracted, and "
        "must be "
        "applied after it",
        "np.exp(log_probs) - smoothing / shape[-1]",
        "real[:, None] * (np.exp(log_probs) - smoothing / shape[-1])",
        "drows = real[:, None] * drows *",
        "drows = drows *",
    ),
    mistake(
        "padding gets the gradient of the softmax: real is applied only at the target",
        "-= 1 - smoothing",
        "-= real * (1 - smoothing)",
        "real[:, None] * ",
        "",
    ),
    mistake(
        "the backward pass of the softmax is applied to p - q, which is the gradient of the logits already",
        "    drows = real",
        "    p = np.exp(log_probs)\n    drows = p * (drows - (p * drows).sum(-1, keepdims=True))\n    "
        "drows = real",
    ),
    mistake(
        "it is only the gradient of the log-probabilities, -q: the backward pass of log-softmax is left out",
        "np.exp(log_probs) - smoothing",
        "-0 * log_probs - smoothing",
    ),
    mistake(
        "it is the gradient of the probabilities, -q / p: the backward pass of the softmax is left out",
        "np.exp(log_probs) - smoothing",
        "-0 * log_probs - smoothing",
        "    drows = real",
        "    drows = drows / np.exp(log_probs)\n    drows = real",
    ),
    mistake(
        "1 - smoothing and smoothing are exchanged",
        "- smoothing / shape[-1]",
        "- (1 - smoothing) / shape[-1]",
        "-= 1 - smoothing",
        "-= smoothing",
    ),
    mistake(
        "dloss / tokens multiplies only p: it belongs to the whole difference p - q",
        "np.exp(log_probs) - smoothing / shape[-1]",
        "np.exp(log_probs) * dloss / tokens - smoothing / shape[-1]",
        "drows * dloss / tokens",
        "drows",
    ),
    mistake(
        "1 - smoothing is subtracted after the division by tokens: it must be divided too",
        f"    {HIT}\n",
        "",
        "    drows = real[:, None] * drows * dloss / tokens",
        "    drows = drows * dloss / tokens\n    drows[np.arange(len(targets)), targets] -= 1 - smoothing\n"
        "    drows = real[:, None] * drows",
    ),
    mistake(
        "the most probable token is used in place of the target",
        "[np.arange(len(targets)), targets]",
        "[np.arange(len(targets)), log_probs.argmax(-1)]",
    ),
    mistake(
        "the target gets 1 - smoothing and the other tokens smoothing / (V - 1): here every token, the "
        "target "
        "too, gets smoothing / V",
        "- smoothing / shape[-1]",
        "- smoothing / (shape[-1] - 1)",
        "-= 1 - smoothing",
        "-= 1 - smoothing - smoothing / (shape[-1] - 1)",
    ),
    mistake(
        "the target gets 1 - smoothing only: smoothing / V belongs to it as well",
        "-= 1 - smoothing",
        "-= 1 - smoothing - smoothing / shape[-1]",
    ),
    mistake(
        "smoothing is divided by V - 2, as in code that leaves out the target and padding: it is divided "
        "by V",
        "- smoothing / shape[-1]",
        "- smoothing / (shape[-1] - 2)",
        "-= 1 - smoothing",
        "-= 1 - smoothing - smoothing / (shape[-1] - 2)",
    ),
    mistake(
        "it is divided by tokens and by V: the mean is over the tokens only",
        " / tokens",
        " / tokens / shape[-1]",
    ),
    mistake(
        "it is divided by the length of the sentences instead of the number of tokens",
        " / tokens",
        " / shape[-2]",
    ),
    mistake(
        "the log-probabilities are normalized a second time: softmax is applied to p",
        "np.exp(log_probs)",
        "(np.exp(np.exp(log_probs)) / np.exp(np.exp(log_probs)).sum(-1, keepdims=True))",
    ),
    mistake(
        "q is multiplied by p: the gradient is the difference p - q",
        HIT,
        "drows = (1 - smoothing) * (targets[:, None] == np.arange(shape[-1])) + smoothing / shape[-1]; "
        "drows = -drows * np.exp(log_probs)",
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
    mistake(
        "smoothing is divided by n_classes - 2, and the target gets 1 - smoothing only: here each class gets "
        "smoothing / n_classes, and the target 1 - smoothing in addition",
        MIXED,
        "np.where(one_hot, 1 - smoothing, smoothing / (n_classes - 2))",
    ),
    mistake(
        "smoothing is subtracted from every entry: one-hot must be multiplied by 1 - smoothing",
        "(1 - smoothing) * one_hot",
        "one_hot - smoothing",
    ),
    mistake(
        "every class gets smoothing, and the target 1 - smoothing: smoothing must be divided among the "
        "classes",
        MIXED,
        "np.where(one_hot, 1 - smoothing, smoothing)",
    ),
    mistake(
        "smoothing / n_classes is taken from the target only once: the target must lose all of "
        "smoothing, and "
        "get its share back",
        MIXED,
        "np.where(one_hot, 1 - smoothing / n_classes, smoothing / n_classes)",
    ),
    mistake(
        "smoothing is divided by the number of targets instead of n_classes",
        "smoothing / n_classes",
        "smoothing / targets.size",
    ),
    mistake(
        "the target gets smoothing, and the other classes share 1 - smoothing: they are exchanged",
        MIXED,
        "np.where(one_hot, smoothing, (1 - smoothing) / (n_classes - 1))",
    ),
    mistake("all classes are equal: the targets are left out", MIXED, "0 * one_hot + 1 / n_classes"),
    mistake(
        "the rows are divided by n_classes once more: each must sum to 1",
        MIXED,
        f"({MIXED}) / n_classes",
    ),
    mistake(
        "the classes are counted from 1: class 0 is the first column",
        "np.arange(n_classes)",
        "np.arange(1, n_classes + 1)",
    ),
    mistake("the terms are subtracted: smoothing / n_classes must be added", "+ smoothing", "- smoothing"),
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
    mistake(
        "this is the gradient of the divergence with p and q exchanged: the terms are weighted with q, not p",
        "-q *",
        "np.exp(log_p) * (log_p - np.log(np.where(q > 0, q, 1)) + 1) *",
    ),
    mistake(
        "q is differentiated too: it is a constant, and only log p depends on the logits",
        "-q *",
        "(np.log(np.where(q > 0, q, 1)) + 1 - log_p) *",
    ),
    mistake(
        "it is -q / p, the gradient of p: dlog_p is the gradient of log p", "-q *", "-q / np.exp(log_p) *"
    ),
    mistake(
        "p is passed to log_softmax_backward instead of log_p", "(dlog_p, log_p)", "(dlog_p, np.exp(log_p))"
    ),
    mistake(
        "the backward pass of softmax is used instead of that of log-softmax",
        "log_softmax_backward_(dlog_p, log_p)",
        "np.exp(log_p) * (dlog_p - (np.exp(log_p) * dlog_p).sum(-1, keepdims=True))",
    ),
    mistake(
        "the target is only the most probable class of q: q is a distribution",
        "-q *",
        "-1.0 * (q == q.max(-1, keepdims=True)) *",
    ),
    mistake("log q is used instead of q", "-q *", "-np.log(np.where(q > 0, q, 1)) *"),
    mistake(
        "it is p - q times p: the gradient of the logits is the difference alone",
        "return log_softmax_backward_(dlog_p, log_p)",
        "return np.exp(log_p) * (np.exp(log_p) - q) * dloss / n",
    ),
    mistake("it is divided by the number of rows twice", " * dloss / n", " * dloss / n / n"),
)
def kl_divergence_backward(dloss: Any, cache: Any) -> Any:
    """Return the gradient of the KL divergence."""
    log_p, q = cache
    n = q.size // q.shape[-1]
    dlog_p = -q * dloss / n
    return log_softmax_backward_(dlog_p, log_p)
