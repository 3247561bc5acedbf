"""Chapters 4 and 5: softmax, similarity, and scaled dot-product attention."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.masks import causal_mask
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics.tools import output, pairs

QUERIES, KEYS, VALUES = (2, 4, 5), (2, 7, 5), (2, 7, 3)
HEADS = "two heads, q (3, 2, 4, 5)"
QUERIES_OF_HEADS, KEYS_OF_HEADS, VALUES_OF_HEADS = (3, 2, 4, 5), (3, 2, 7, 5), (3, 2, 7, 3)  # (B, H, T, K)
CAUSAL = causal_mask(6, np.zeros(1))


def _softmax(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    masked = np.where(np.tri(4, dtype=bool), rng.standard_normal((4, 4)), -np.inf)
    return {
        "softmax(x)": output(own.softmax(rng.standard_normal((2, 3, 5)))),
        "softmax(x + 1000)": output(own.softmax(1000 + rng.standard_normal((2, 5)))),
        "softmax(masked)": output(own.softmax(masked)),
        "softmax(x) of a float32 x": output(own.softmax(rng.standard_normal((2, 5)).astype(np.float32))),
        "softmax([[1000, 999], [-1000, -999]])": output(
            own.softmax(np.array([[1000.0, 999.0], [-1000.0, -999.0]]))  # rows of very different size
        ),
    }


def _attention(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    q, k, v = (rng.standard_normal(shape) for shape in (QUERIES, KEYS, VALUES))
    mask = np.arange(7) < np.array([[[5]], [[6]]])
    result = {"y": output(own.attention(q, k, v)), "y with a mask": output(own.attention(q, k, v, mask))}
    heads = (rng.standard_normal(shape) for shape in (QUERIES_OF_HEADS, KEYS_OF_HEADS, VALUES_OF_HEADS))
    return result | {f"y of {HEADS}": output(own.attention(*heads))}


ATTENTION = exercises(
    r'''
=== 4 dot-similarity-backward: the gradients of the scores q kᵀ

def dot_similarity_backward(dscores, cache):
    """Return the gradients of scores = q kᵀ, which means scores[t, s] = q_t · k_s.

    dscores  the gradient of the scores, of shape (..., T, S)
    cache    .q (..., T, K) and .k (..., S, K)
    Returns (dq, dk), with the shapes of q and k. a.swapaxes(-1, -2) transposes the last two axes.
    """
    q, k = cache
    # solution
    dq = dscores @ k
    dk = dscores.swapaxes(-1, -2) @ q
    return dq, dk
--- Row t of the scores depends on q_t, and column s depends on k_s. So the gradient of q_t is a sum over row
    t, and the gradient of k_s is a sum over column s.
--- dq_t is the sum over s of dscores[t, s] k_s. Write this sum as a matrix product.
--- dq = dscores @ k. For dk, swap the last two axes of dscores and multiply by q.

=== 4 general-similarity-backward: the gradients of the scores q weight kᵀ

def general_similarity_backward(dscores, cache):
    """Return the gradients of scores = q weight kᵀ.

    The forward pass has two steps: projected = q weight, then scores = projected kᵀ.
    dscores  the gradient of the scores, of shape (..., T, S)
    cache    .q (..., T, K), .k (..., S, L), .weight (K, L), .projected (..., T, L)
    Returns (dq, dk, dweight). All queries of all sentences use the same weight.
    """
    q, k, weight, projected = cache
    # solution
    dprojected = dscores @ k
    dk = dscores.swapaxes(-1, -2) @ projected
    dq = dprojected @ weight.T
    rows, drows = q.reshape(-1, q.shape[-1]), dprojected.reshape(-1, dprojected.shape[-1])
    dweight = rows.T @ drows
    return dq, dk, dweight
--- Begin with the last step, scores = projected kᵀ. It gives dprojected and dk.
--- The first step, projected = q weight, is a linear layer. Its dy is dprojected.
--- Reshape q and dprojected to rows with x.reshape(-1, x.shape[-1]). Then dweight is the transpose of the
    first array times the second one.

=== 5 softmax: softmax for large scores and for -inf
import numpy as np


def softmax(x):
    """Return y_i = exp(x_i) / sum_j exp(x_j) over the last axis.

    x  of shape (..., N). Entries may be as large as 1000. Some entries of a row may be -inf (masked).
    Returns y (..., N) with the dtype of x. Each row sums to 1, and an entry of -inf gives 0.
    """
    # solution
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
--- exp(1000) overflows. If you subtract the same number from all entries of a row, y does not change. Which
    number helps?
--- Subtract the largest entry of each row, with keepdims=True. Then no exponent is larger than 0.
--- Compute e = np.exp(x - x.max(-1, keepdims=True)), and divide it by its sum over the last axis.

=== 5 softmax-backward: the backward pass of softmax
import numpy as np


def softmax_backward(dy, cache):
    """Return the gradient of y = softmax(x) over the last axis: y_i = exp(x_i) / sum_j exp(x_j).

    dy     the gradient of y, of shape (..., N)
    cache  the output y, of shape (..., N)
    Returns dx (..., N). You do not need an N × N matrix.
    """
    y = cache
    # solution
    return y * (dy - (dy * y).sum(-1, keepdims=True))
--- x_j influences every y_i of its row, not only y_j, because exp(x_j) is part of the sum in the
    denominator.
--- The Jacobian is diag(y) - y yᵀ. Multiply it by dy on paper. The result contains only one sum for each
    row.
--- dx_i = y_i · (dy_i - Σ_j dy_j y_j). Use keepdims=True, so that the sum broadcasts.

=== 5 attention: scaled dot-product attention, forward
import numpy as np

from npformer import functional as F  # F.softmax(x) -> (y, cache), over the last axis


def attention(q, k, v, mask=None):
    """Return y = softmax(q kᵀ / sqrt(K)) v.

    q     (..., T, K)
    k     (..., S, K)
    v     (..., S, L)
    mask  bool, broadcastable to (..., T, S), True where a query may attend to a key; or None
    Returns y (..., T, L).
    """
    # solution
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = F.softmax(scores)[0]
    return weights @ v
--- There are four steps: compute the scores, apply the mask, apply the softmax, and compute the weighted
    mean of the values.
--- The scores are q @ k.swapaxes(-1, -2) / sqrt(K), of shape (..., T, S). K is q.shape[-1].
--- Before the softmax, np.where(mask, scores, -np.inf) applies the mask. The output is weights @ v.

=== 5 attention-backward: the backward pass of attention
import numpy as np

from npformer import functional as F  # F.softmax_backward(dweights, weights) -> dscores


def attention_backward(dy, cache):
    """Return the gradients of y = softmax(q kᵀ scale) v.

    dy     the gradient of y, of shape (..., T, L)
    cache  .q (..., T, K), .k (..., S, K), .v (..., S, L), .weights (..., T, S), .scale (1 / sqrt(K)).
           Its other fields are for dropout and masks. You do not need them: there is no dropout here,
           and the weights of masked keys are 0.
    Returns (dq, dk, dv).
    """
    q, k, v, weights, scale = cache.q, cache.k, cache.v, cache.weights, cache.scale
    # y = weights @ v
    # weights = softmax(scores)
    # scores = q kᵀ scale
    # solution
    dweights = dy @ v.swapaxes(-1, -2)
    dv = weights.swapaxes(-1, -2) @ dy
    dscores = F.softmax_backward(dweights, weights) * scale
    dq = dscores @ k
    dk = dscores.swapaxes(-1, -2) @ q
    return dq, dk, dv
--- The forward pass has three steps: scores, weights, y. Go through them in the opposite order.
--- y = weights @ v is a matrix product. So dweights = dy vᵀ and dv = weightsᵀ dy, where ᵀ swaps the last two
    axes.
--- dscores = F.softmax_backward(dweights, weights) * scale. Then dq = dscores @ k and dk = dscoresᵀ @ q.
''',
    {
        "dot-similarity-backward": pairs(
            F.dot_similarity, ("", QUERIES, KEYS), (HEADS, QUERIES_OF_HEADS, KEYS_OF_HEADS)
        ),
        "general-similarity-backward": pairs(
            F.general_similarity,
            ("", QUERIES, (2, 7, 6), (5, 6)),
            (HEADS, QUERIES_OF_HEADS, (3, 2, 7, 6), (5, 6)),
        ),
        "softmax": Task(F.softmax, Values("", _softmax)),
        "softmax-backward": pairs(F.softmax, ("", (4, 5)), ("x (2, 3, 5)", (2, 3, 5))),
        "attention": Task(F.attention, Values("", _attention, numbers=((5, "K"),))),
        "attention-backward": pairs(
            F.attention,
            ("", QUERIES, KEYS, VALUES),
            ("causal mask", (2, 6, 5), (2, 6, 5), (2, 6, 3), {"mask": CAUSAL}),
            (HEADS, QUERIES_OF_HEADS, KEYS_OF_HEADS, VALUES_OF_HEADS),
        ),
    },
)
