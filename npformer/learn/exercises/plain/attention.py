"""Chapters 4 and 5: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import softmax as softmax_
from npformer.functional import softmax_backward as softmax_backward_
from npformer.learn.exercises.plain.registry import mistake, plain

OWN_SUM = "(dy - (dy * y).sum(-1, keepdims=True))"
ROOT = " / np.sqrt(q.shape[-1])"
MASKED = "np.where(mask, scores, -np.inf)"
SCALED = "softmax_backward_(dweights, weights) * scale"


@plain(
    "dot-similarity-backward",
    mistake(
        "dq is divided by sqrt(K), and these scores are not scaled",
        "dscores @ k",
        "dscores @ k / np.sqrt(k.shape[-1])",
    ),
    mistake(
        "dk is divided by sqrt(K), and these scores are not scaled",
        "-2) @ q",
        "-2) @ q / np.sqrt(k.shape[-1])",
    ),
    mistake(
        "dq and dk are divided by sqrt(K), and these scores are not scaled",
        "dscores @ k",
        "dscores @ k / np.sqrt(k.shape[-1])",
        "-2) @ q",
        "-2) @ q / np.sqrt(k.shape[-1])",
    ),
    mistake(
        "dk is divided by the batch size: a gradient must not be averaged here", "-2) @ q", "-2) @ q / len(q)"
    ),
    mistake(
        "dq is divided by the batch size: a gradient must not be averaged here",
        "dscores @ k",
        "dscores @ k / len(q)",
    ),
)
def dot_similarity_backward(dscores: Any, cache: Any) -> Any:
    """Return the gradients of the scores q kᵀ."""
    q, k = cache
    dq = dscores @ k
    dk = dscores.swapaxes(-1, -2) @ q
    return dq, dk


@plain(
    "general-similarity-backward",
    mistake(
        "dweight is divided by the batch size: a gradient must not be averaged here",
        "@ drows",
        "@ drows / len(q)",
    ),
    mistake(
        "dweight is divided by the number of rows: a gradient must not be averaged here",
        "@ drows",
        "@ drows / len(drows)",
    ),
    mistake(
        "dk is computed from q instead of projected: the weight is left out", "-2) @ projected", "-2) @ q"
    ),
)
def general_similarity_backward(dscores: Any, cache: Any) -> Any:
    """Return the gradients of the scores q weight kᵀ."""
    q, k, weight, projected = cache
    dprojected = dscores @ k
    dk = dscores.swapaxes(-1, -2) @ projected
    dq = dprojected @ weight.T
    rows, drows = q.reshape(-1, q.shape[-1]), dprojected.reshape(-1, dprojected.shape[-1])
    dweight = rows.T @ drows
    return dq, dk, dweight


@plain(
    "softmax",
    mistake(
        "the largest entry of the row is not subtracted, so exp overflows and the result is NaN",
        "x - x.max(-1, keepdims=True)",
        "x",
    ),
    mistake(
        "the smallest entry of the row is subtracted instead of the largest: with -inf this gives NaN",
        "x.max",
        "x.min",
    ),
    mistake(
        "the largest entry of the whole array is subtracted instead of that of each row: in a row of much "
        "smaller entries, exp gives only zeros",
        "x.max(-1, keepdims=True)",
        "x.max()",
    ),
    mistake(
        "it is divided by the sum over all entries instead of the sum of each row",
        "e.sum(-1, keepdims=True)",
        "e.sum()",
    ),
    mistake(
        "the softmax runs over the wrong axis: over axis 0 instead of the last one", "e.sum(-1", "e.sum(0"
    ),
    mistake(
        "the softmax runs over the wrong axis: over the last axis but one instead of the last one",
        "e.sum(-1",
        "e.sum(-2",
    ),
    mistake("it is divided by the mean of each row instead of the sum", "e.sum", "e.mean"),
    mistake("it is not divided by the sum of the row", "e / e.sum(-1, keepdims=True)", "e"),
    mistake("powers of 2 are used instead of exp", "np.exp(", "np.exp2("),
    mistake("powers of 10 are used instead of exp", "np.exp(", "10.0 ** ("),
    mistake(
        "exp is left out: the entries themselves are divided by their sum",
        "np.exp(x - x.max(-1, keepdims=True))",
        "x",
    ),
)
def softmax(x: Any) -> Any:
    """Return the softmax of the last axis, also for large scores and rows of -inf."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@plain(
    "softmax-backward",
    mistake(
        "the term with the sum over the row is left out: every y_i of a row depends on x_j", OWN_SUM, "dy"
    ),
    mistake(
        "only the diagonal of the Jacobian is used, as for a sigmoid: the other entries of the row "
        "depend on x_j too",
        OWN_SUM,
        "dy * (1 - y)",
    ),
    mistake("the sum runs over the wrong axis: over axis 0 instead of the last one", ".sum(-1", ".sum(0"),
    mistake(
        "the sum runs over the wrong axis: over the last axis but one instead of the last one",
        ".sum(-1",
        ".sum(-2",
    ),
    mistake(
        "one number is subtracted for all rows: compute the sum of each row",
        ".sum(-1, keepdims=True)",
        ".sum()",
    ),
    mistake("the sum over the row is averaged: it must be a sum and not a mean", ".sum(", ".mean("),
    mistake("the term with the sum has the wrong sign", "dy - (", "dy + ("),
    mistake("the factor y is left out in the sum: dy must be weighted with y", "(dy * y).sum", "dy.sum"),
    mistake("the factor y in front is left out", "y * (dy - ", "(dy - "),
    mistake(
        "the factor y is left out in front of the sum over the row",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "y * dy - (dy * y).sum(-1, keepdims=True)",
    ),
)
def softmax_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of the scores."""
    y = cache
    return y * (dy - (dy * y).sum(-1, keepdims=True))


@plain(
    "attention",
    mistake("the scores are not divided by sqrt(K)", ROOT, ""),
    mistake("the scores are multiplied by sqrt(K) instead of divided", ROOT, " * np.sqrt(q.shape[-1])"),
    mistake(
        "the scores are divided by K instead of its square root, or by the square root twice",
        ROOT,
        " / q.shape[-1]",
    ),
    mistake(
        "the division by sqrt(K) comes after the softmax: it must divide the scores, before the softmax",
        ROOT,
        "",
        "softmax_(scores)[0]",
        "softmax_(scores)[0]" + ROOT,
    ),
    mistake(
        "the square root is that of the width of the values, and must be that of K, the width of q and k",
        ROOT,
        " / np.sqrt(v.shape[-1])",
    ),
    mistake(
        "the square root is that of the number of keys, and must be that of K, the width of q and k",
        ROOT,
        " / np.sqrt(k.shape[-2])",
    ),
    mistake(
        "the mask is reversed: it hides the keys where it is True", MASKED, "np.where(mask, -np.inf, scores)"
    ),
    mistake(
        "the mask is applied after the softmax, so the weights of a query no longer sum to 1",
        MASKED,
        "scores",
        "return weights",
        "weights = weights if mask is None else np.where(mask, weights, 0)\n    return weights",
    ),
    mistake(
        "the mask (0 and 1) is added to the scores, which hides nothing: a hidden score must become -inf",
        MASKED,
        "scores + mask",
    ),
    mistake(
        "the scores are multiplied by the mask: a hidden score becomes 0 instead of -inf",
        MASKED,
        "scores * mask",
    ),
    mistake("the mask is left out", "mask is not None", "False"),
    mistake(
        "the softmax runs over the wrong axis: over the queries instead of the keys",
        "softmax_(scores)[0]",
        "softmax_(scores.swapaxes(-1, -2))[0].swapaxes(-1, -2)",
    ),
    mistake(
        "the softmax is left out: the scores themselves are used as weights", "softmax_(scores)[0]", "scores"
    ),
)
def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Return scaled dot-product attention."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax_(scores)[0]
    return weights @ v


@plain(
    "attention-backward",
    mistake("the factor scale = 1/sqrt(K) of the scores is left out in dq and dk", " * scale", ""),
    mistake("dq and dk are divided by scale = 1/sqrt(K) instead of multiplied", " * scale", " / scale"),
    mistake("dq and dk are multiplied by scale = 1/sqrt(K) twice", " * scale", " * scale * scale"),
    mistake("the factor scale = 1/sqrt(K) is left out in dk", "-2) @ q", "-2) @ q / scale"),
    mistake("the factor scale = 1/sqrt(K) is left out in dq", "dscores @ k", "dscores @ k / scale"),
    mistake(
        "dv is multiplied by scale = 1/sqrt(K), which belongs to the scores only",
        "-2) @ dy",
        "-2) @ dy * scale",
    ),
    mistake("the backward pass of the softmax is left out", SCALED, "dweights * scale"),
    mistake("the backward pass of the softmax and the factor scale are left out", SCALED, "dweights"),
    mistake(
        "the two arguments of softmax_backward are exchanged",
        "(dweights, weights) *",
        "(weights, dweights) *",
    ),
    mistake(
        "softmax_backward is replaced by a product with the weights: the sum over the row is left out",
        SCALED,
        "weights * dweights * scale",
    ),
    mistake(
        "softmax_backward is replaced by weights (1 - weights): the other entries of the row count too",
        SCALED,
        "weights * (1 - weights) * dweights * scale",
    ),
    mistake("dv is computed from dweights instead of the weights", "dv = weights.", "dv = dweights."),
)
def attention_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of the queries, the keys and the values."""
    q, k, v, weights, scale = cache.q, cache.k, cache.v, cache.weights, cache.scale
    dweights = dy @ v.swapaxes(-1, -2)
    dv = weights.swapaxes(-1, -2) @ dy
    dscores = softmax_backward_(dweights, weights) * scale
    dq = dscores @ k
    dk = dscores.swapaxes(-1, -2) @ q
    return dq, dk, dv
