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
    mistake(
        "dk is computed from dq instead of q",
        "-2) @ q",
        "-2) @ dq",
    ),
    mistake(
        "dq is computed from dk instead of k",
        "dscores @ k",
        "dscores @ (dscores.swapaxes(-1, -2) @ q)",
    ),
    mistake(
        "dq is divided by the number of keys, and dk by the number of queries: the products must be sums",
        "dscores @ k",
        "dscores @ k / k.shape[-2]",
        "-2) @ q",
        "-2) @ q / q.shape[-2]",
    ),
    mistake(
        "dq is divided by the number of keys: it must be a sum, not averaged",
        "dscores @ k",
        "dscores @ k / k.shape[-2]",
    ),
    mistake(
        "dk is divided by the number of queries: it must be a sum, not averaged",
        "-2) @ q",
        "-2) @ q / q.shape[-2]",
    ),
    mistake(
        "dq and dk are divided by the batch size: a gradient must not be averaged here",
        "dscores @ k",
        "dscores @ k / len(q)",
        "-2) @ q",
        "-2) @ q / len(q)",
    ),
    mistake(
        "dk is summed over axis 0: each sentence has its own keys",
        "dk = dscores.swapaxes(-1, -2) @ q",
        "dk = np.zeros_like(k) + (dscores.swapaxes(-1, -2) @ q).sum(0)",
    ),
    mistake(
        "dq is summed over axis 0: each sentence has its own queries",
        "dq = dscores @ k",
        "dq = np.zeros_like(q) + (dscores @ k).sum(0)",
    ),
    mistake(
        "dscores passes through the backward pass of a softmax: these scores have no softmax",
        "q, k = cache",
        "q, k = cache\n    dscores = softmax_backward_(dscores, softmax_(q @ k.swapaxes(-1, -2))[0])",
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
    mistake("dk is computed from dprojected instead of projected", "-2) @ projected", "-2) @ dprojected"),
    mistake(
        "dweight is that of the last sentence only: the products of all sentences must be summed",
        "rows.T @ drows",
        "q[-1].reshape(-1, q.shape[-1]).T @ dprojected[-1].reshape(-1, dprojected.shape[-1])",
    ),
    mistake(
        "dweight is that of the first sentence only: the products of all sentences must be summed",
        "rows.T @ drows",
        "q[0].reshape(-1, q.shape[-1]).T @ dprojected[0].reshape(-1, dprojected.shape[-1])",
    ),
    mistake(
        "the gradients are divided by sqrt(K), and these scores are not scaled",
        "q, k, weight, projected = cache",
        "q, k, weight, projected = cache\n    dscores = dscores / np.sqrt(q.shape[-1])",
    ),
    mistake(
        "the gradients are divided by sqrt(L), and these scores are not scaled",
        "q, k, weight, projected = cache",
        "q, k, weight, projected = cache\n    dscores = dscores / np.sqrt(k.shape[-1])",
    ),
    mistake(
        "dweight is computed from projected instead of dprojected: it must contain the gradient",
        "dprojected.reshape(-1, dprojected.shape[-1])",
        "projected.reshape(-1, projected.shape[-1])",
    ),
    mistake(
        "dweight is the sum over the queries of one position only: those of all positions must be summed",
        "rows.T @ drows",
        "rows[:: q.shape[-2]].T @ drows[:: q.shape[-2]]",
    ),
    mistake(
        "the factor weight is applied twice in dq: dprojected is the gradient behind the weight",
        "@ weight.T",
        "@ weight.T @ weight @ weight.T",
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
        "the smallest entry of the row, or its mean, is subtracted instead of the largest: with -inf "
        "this gives "
        "NaN",
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
    mistake(
        "the entries are divided by the largest one: it must be subtracted",
        "x - x.max(-1, keepdims=True)",
        "x / x.max(-1, keepdims=True)",
    ),
    mistake(
        "it is divided by the Euclidean length of the row: the entries must sum to 1",
        "e.sum(-1, keepdims=True)",
        "np.sqrt((e**2).sum(-1, keepdims=True))",
    ),
    mistake(
        "the logarithm of the softmax is returned",
        "return e / e.sum(-1, keepdims=True)",
        "return np.log(e / e.sum(-1, keepdims=True))",
    ),
    mistake(
        "the sigmoid of each entry is computed: the entries of a row must share the probability 1",
        "return e / e.sum(-1, keepdims=True)",
        "return 1 / (1 + np.exp(-x))",
    ),
    mistake(
        "an entry of -inf is treated as 0: a masked entry must get the probability 0",
        "e = np.exp(",
        "x = np.where(np.isinf(x), np.zeros_like(x), x)\n    e = np.exp(",
    ),
    mistake(
        "the sign of x is wrong: the smallest entry gets the largest probability",
        "e = np.exp(",
        "x = -x\n    e = np.exp(",
    ),
    mistake(
        "the exponentials are divided by one plus their sum: the row must sum to 1",
        "e / e.sum(-1, keepdims=True)",
        "e / (1 + e.sum(-1, keepdims=True))",
    ),
    *(
        mistake(
            "a small number is added to the sum, so the row does not sum to 1: after the largest entry is "
            "subtracted, the sum is never 0",
            "e / e.sum(-1, keepdims=True)",
            f"e / (e.sum(-1, keepdims=True) + 1e-{digits})",
        )
        for digits in (3, 5, 6, 8)
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
    mistake(
        "exp is applied to the cache: it holds the output y, which is a probability already",
        "y = cache",
        "y = np.exp(cache)",
    ),
    mistake(
        "the softmax is applied to the cache, which holds its output y already",
        "y = cache",
        "y = softmax_(cache)[0]",
    ),
    mistake(
        "this is the backward pass of log-softmax",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "dy - y * dy.sum(-1, keepdims=True)",
    ),
    mistake(
        "y - dy is the gradient of softmax and cross-entropy together: here dy is the gradient of y",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "y - dy",
    ),
    mistake(
        "the factor dy is left out: y (1 - y) is only the derivative, and only its diagonal",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "y * (1 - y)",
    ),
    mistake(
        "the diagonal of the Jacobian is 1 instead of y in its first part",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "dy - y * (dy * y).sum(-1, keepdims=True)",
    ),
    mistake(
        "only the entries of the Jacobian beside its diagonal are used: the diagonal y (1 - y) is left out",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "y * (dy * y - (dy * y).sum(-1, keepdims=True))",
    ),
    mistake(
        "the entries of the Jacobian beside its diagonal have the wrong sign: they are -y_i y_j",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "dy * y * (1 - y) + y * ((dy * y).sum(-1, keepdims=True) - dy * y)",
    ),
    mistake(
        "the diagonal is counted twice: the sum over the row contains it already",
        "y * (dy - (dy * y).sum(-1, keepdims=True))",
        "y * (dy * (1 - y) - (dy * y).sum(-1, keepdims=True))",
    ),
    mistake(
        "y stands outside the sum over the row and multiplies the sum of dy: dy must be weighted before it "
        "is summed",
        "(dy - (dy * y).sum(-1, keepdims=True))",
        "(dy - y * dy.sum(-1, keepdims=True))",
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
    mistake(
        "the square root is that of the number of queries, and must be that of K, the width of q and k",
        ROOT,
        " / np.sqrt(q.shape[-2])",
    ),
    mistake(
        "the square root is that of the length of axis 0, and must be that of K, the width of q and k",
        ROOT,
        " / np.sqrt(len(q))",
    ),
    mistake("a hidden score becomes -1, which does not hide the key: it must become -inf", "-np.inf", "-1.0"),
    mistake(
        "a hidden score becomes -10, which does not hide the key: it must become -inf", "-np.inf", "-10.0"
    ),
    mistake(
        "only the key with the largest score gets weight: the softmax shares the weight among all keys",
        "softmax_(scores)[0]",
        "(scores == scores.max(-1, keepdims=True)).astype(scores.dtype)",
    ),
    mistake(
        "q and k are divided by their lengths (cosine similarity): the scores are plain products, divided "
        "by sqrt(K)",
        "    scores = q @",
        "    q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))\n    scores = q @",
    ),
    mistake(
        "the weights of all queries together sum to 1: the softmax runs over the keys of each query",
        "softmax_(scores)[0]",
        "np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum((-2, -1), keepdims=True)",
    ),
    mistake(
        "exp is not divided by its sum: the weights of a query must sum to 1",
        "softmax_(scores)[0]",
        "np.exp(scores)",
    ),
    mistake("the softmax is applied twice", "softmax_(scores)[0]", "softmax_(softmax_(scores)[0])[0]"),
    mistake(
        "the sigmoid of each score is used instead of the softmax of each row",
        "softmax_(scores)[0]",
        "1 / (1 + np.exp(-scores))",
    ),
    mistake(
        "the weights of all keys are equal: the scores are not used",
        "softmax_(scores)[0]",
        "np.full_like(scores, 1 / scores.shape[-1])",
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
    mistake(
        "the softmax runs over the queries instead of the keys in its backward pass: the wrong axis",
        "softmax_backward_(dweights, weights)",
        "softmax_backward_(dweights.swapaxes(-1, -2), weights.swapaxes(-1, -2)).swapaxes(-1, -2)",
    ),
    mistake("dk is computed from dq instead of q", "-2) @ q", "-2) @ dq"),
    mistake(
        "dv is computed from dscores instead of the weights",
        "    dv = weights.swapaxes(-1, -2) @ dy\n",
        "",
        "    dq = dscores",
        "    dv = dscores.swapaxes(-1, -2) @ dy\n    dq = dscores",
    ),
    mistake(
        "the backward pass of log-softmax is used instead of that of softmax",
        "softmax_backward_(dweights, weights)",
        "(dweights - weights * dweights.sum(-1, keepdims=True))",
    ),
    mistake("the square root of scale is used: scale is 1/sqrt(K) already", " * scale", " * np.sqrt(scale)"),
    mistake(
        "dv is divided by the number of queries: it must be a sum, not averaged",
        "-2) @ dy",
        "-2) @ dy / dy.shape[-2]",
    ),
    mistake(
        "dk is divided by the number of queries: it must be a sum, not averaged",
        "-2) @ q",
        "-2) @ q / q.shape[-2]",
    ),
    mistake(
        "dv is dy itself for each key, as if all weights were 1",
        "dv = weights.swapaxes(-1, -2) @ dy",
        "dv = np.ones_like(weights).swapaxes(-1, -2) @ dy",
    ),
    mistake(
        "the weights are not used in the backward pass of the softmax: they are computed from dweights again",
        "softmax_backward_(dweights, weights)",
        "softmax_backward_(dweights, softmax_(dweights)[0])",
    ),
    mistake(
        "dscores is multiplied by the weights once more: softmax_backward contains them",
        SCALED,
        "weights * " + SCALED,
    ),
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
