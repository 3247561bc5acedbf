"""Lessons 4 and 5: softmax, similarity, and scaled dot-product attention."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.masks import causal_mask
from npformer.learn.exercises.exercise import Exercise, Functions, Values
from npformer.learn.exercises.topics.tools import output, pair_trial

QUERIES, KEYS, VALUES = (2, 4, 5), (2, 7, 5), (2, 7, 3)
CAUSAL = causal_mask(6, np.zeros(1))


def _softmax(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    masked = np.where(np.tri(4, dtype=bool), rng.standard_normal((4, 4)), -np.inf)
    return {
        "softmax(x)": output(own.softmax(rng.standard_normal((2, 3, 5)))),
        "softmax(x + 1000)": output(own.softmax(1000 + rng.standard_normal((2, 5)))),
        "softmax(masked)": output(own.softmax(masked)),
        "softmax(x) of a float32 x": output(own.softmax(rng.standard_normal((2, 5)).astype(np.float32))),
    }


def _attention(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    q, k, v = (rng.standard_normal(shape) for shape in (QUERIES, KEYS, VALUES))
    mask = np.arange(7) < np.array([[[5]], [[6]]])
    return {"y": output(own.attention(q, k, v)), "y with a mask": output(own.attention(q, k, v, mask))}


ATTENTION = (
    Exercise(
        "dot-similarity-backward",
        4,
        "the gradient of the similarities q kᵀ",
        '''

def dot_similarity_backward(dscores, cache):
    """The gradients of scores = q kᵀ, so scores[t, s] = q_t · k_s.

    dscores  the gradient of the scores, shape (..., T, S)
    cache    .q (..., T, K) and .k (..., S, K)
    Returns (dq, dk), with the shapes of q and k. a.swapaxes(-1, -2) transposes the last two axes.
    """
    q, k = cache
''',
        (pair_trial("", F.dot_similarity, "dot_similarity_backward", QUERIES, KEYS),),
        (
            "q_t takes part in row t of the scores, k_s in column s: each gathers from there.",
            "dq_t = sum over s of dscores[t, s] k_s. Which product of matrices is that?",
            "dq = dscores @ k; dk the same with the last two axes of dscores swapped, and q.",
        ),
        {"dot_similarity_backward": F.dot_similarity_backward},
    ),
    Exercise(
        "general-similarity-backward",
        4,
        "similarity through a matrix: q weight kᵀ",
        '''

def general_similarity_backward(dscores, cache):
    """The gradients of scores = q weight kᵀ, made in two steps: projected = q weight; scores = projected kᵀ.

    dscores  (..., T, S)
    cache    .q (..., T, K), .k (..., S, L), .weight (K, L), .projected (..., T, L)
    Returns (dq, dk, dweight). The weight served every query of every sentence.
    """
    q, k, weight, projected = cache
''',
        (pair_trial("", F.general_similarity, "general_similarity_backward", QUERIES, (2, 7, 6), (5, 6)),),
        (
            "Go backwards: first through scores = projected kᵀ, which gives dprojected and dk.",
            "Then projected = q weight is a linear map, with dprojected for its dy.",
            "dweight = (q as rows)ᵀ @ (dprojected as rows): x.reshape(-1, x.shape[-1]) makes rows.",
        ),
        {"general_similarity_backward": F.general_similarity_backward},
    ),
    Exercise(
        "softmax",
        5,
        "softmax, safe for large scores and for -inf",
        '''
import numpy as np


def softmax(x):
    """y_i = exp(x_i) / sum_j exp(x_j) over the last axis.

    x  shape (..., N); entries may be as large as 1000, and some of a row may be -inf (masked)
    Returns y (..., N), of x's dtype: rows sum to 1, and -inf gives 0.
    """
''',
        (Values("", _softmax),),
        (
            "exp(1000) overflows. Which number may you subtract from a whole row without changing y?",
            "Subtract the largest of each row, keepdims=True; then no exponent is above 0.",
            "e = np.exp(x - x.max(-1, keepdims=True)), divided by its sum over the last axis.",
        ),
        {"softmax": F.softmax},
    ),
    Exercise(
        "softmax-backward",
        5,
        "the backward pass of softmax",
        '''
import numpy as np


def softmax_backward(dy, cache):
    """The gradient of y = softmax(x) over the last axis: y_i = exp(x_i) / sum_j exp(x_j).

    dy     the gradient of y, shape (..., N)
    cache  y itself, shape (..., N)
    Returns dx (..., N). No N × N matrix is needed.
    """
    y = cache
''',
        (
            pair_trial("", F.softmax, "softmax_backward", (4, 5)),
            pair_trial("x (2, 3, 5)", F.softmax, "softmax_backward", (2, 3, 5)),
        ),
        (
            "Raising x_j raises e_j, and with it the total: so every y_i moves, not only y_j.",
            "The Jacobian is diag(y) - y yᵀ. Multiply it by dy on paper, and only one sum a row is left.",
            "dx_i = y_i · (dy_i - the sum over j of dy_j y_j); keepdims=True lets the sum broadcast.",
        ),
        {"softmax_backward": F.softmax_backward},
    ),
    Exercise(
        "attention",
        5,
        "scaled dot-product attention, forward",
        '''
import numpy as np

from npformer.functional import softmax  # softmax(x) -> (y, cache), over the last axis


def attention(q, k, v, mask=None):
    """y = softmax(q kᵀ / sqrt(K)) v.

    q  (..., T, K)   k  (..., S, K)   v  (..., S, L)
    mask  bool, broadcastable to (..., T, S), True where a query may look; or None
    Returns y (..., T, L).
    """
''',
        (Values("", _attention, numbers=((5, "K"),)),),
        (
            "Six steps: products, scale, mask, exponents, sums, the mean of the values.",
            "q @ k.swapaxes(-1, -2) gives the scores (..., T, S); K is q.shape[-1].",
            "np.where(mask, scores, -np.inf) before the softmax; then weights @ v.",
        ),
        {"attention": F.attention},
    ),
    Exercise(
        "attention-backward",
        5,
        "the backward pass of attention",
        '''
import numpy as np

from npformer.functional import softmax_backward  # softmax_backward(dweights, weights) -> dscores


def attention_backward(dy, cache):
    """The gradients of y = softmax(q kᵀ scale) v.

    dy     (..., T, L)
    cache  .q (..., T, K), .k (..., S, K), .v (..., S, L), .weights (..., T, S), .scale (1 / sqrt(K)),
           and .keep and .masking, which you need not look at here: nothing is dropped, and the weights
           of masked keys are 0
    Returns (dq, dk, dv).
    """
    q, k, v, weights, scale = cache.q, cache.k, cache.v, cache.weights, cache.scale
    # y = weights @ v
    # weights = softmax(scores)
    # scores = q kᵀ scale
''',
        (
            pair_trial("", F.attention, "attention_backward", QUERIES, KEYS, VALUES),
            pair_trial(
                "causal mask", F.attention, "attention_backward", (2, 6, 5), (2, 6, 5), (2, 6, 3), mask=CAUSAL
            ),
        ),
        (
            "Three steps forward, so three steps backward, the last one first: y, weights, scores.",
            "y = weights @ v is a product: dweights = dy vᵀ, dv = weightsᵀ dy (last two axes swapped).",
            "dscores = softmax_backward(dweights, weights) · scale; dq = dscores @ k and dk = dscoresᵀ @ q.",
        ),
        {"attention_backward": F.attention_backward},
    ),
)
