"""Chapters 4 and 5: softmax, similarity, and scaled dot-product attention."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.masks import causal_mask
from npformer.learn.exercises.exercise import Exercise, Functions, Values
from npformer.learn.exercises.topics.tools import output, pair_trial

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


ATTENTION = (
    Exercise(
        "dot-similarity-backward",
        4,
        "the gradients of the scores q kᵀ",
        '''

def dot_similarity_backward(dscores, cache):
    """Return the gradients of scores = q kᵀ, which means scores[t, s] = q_t · k_s.

    dscores  the gradient of the scores, of shape (..., T, S)
    cache    .q (..., T, K) and .k (..., S, K)
    Returns (dq, dk), with the shapes of q and k. a.swapaxes(-1, -2) transposes the last two axes.
    """
    q, k = cache
''',
        (
            pair_trial("", F.dot_similarity, "dot_similarity_backward", QUERIES, KEYS),
            pair_trial(HEADS, F.dot_similarity, "dot_similarity_backward", QUERIES_OF_HEADS, KEYS_OF_HEADS),
        ),
        (
            "Row t of the scores depends on q_t, and column s depends on k_s. So the gradient of q_t is a "
            "sum over row t, and the gradient of k_s is a sum over column s.",
            "dq_t is the sum over s of dscores[t, s] k_s. Write this sum as a matrix product.",
            "dq = dscores @ k. For dk, swap the last two axes of dscores and multiply by q.",
        ),
        {"dot_similarity_backward": F.dot_similarity_backward},
    ),
    Exercise(
        "general-similarity-backward",
        4,
        "the gradients of the scores q weight kᵀ",
        '''

def general_similarity_backward(dscores, cache):
    """Return the gradients of scores = q weight kᵀ.

    The forward pass has two steps: projected = q weight, then scores = projected kᵀ.
    dscores  the gradient of the scores, of shape (..., T, S)
    cache    .q (..., T, K), .k (..., S, L), .weight (K, L), .projected (..., T, L)
    Returns (dq, dk, dweight). All queries of all sentences use the same weight.
    """
    q, k, weight, projected = cache
''',
        (
            pair_trial("", F.general_similarity, "general_similarity_backward", QUERIES, (2, 7, 6), (5, 6)),
            pair_trial(
                HEADS,
                F.general_similarity,
                "general_similarity_backward",
                QUERIES_OF_HEADS,
                (3, 2, 7, 6),
                (5, 6),
            ),
        ),
        (
            "Begin with the last step, scores = projected kᵀ. It gives dprojected and dk.",
            "The first step, projected = q weight, is a linear layer. Its dy is dprojected.",
            "Reshape q and dprojected to rows with x.reshape(-1, x.shape[-1]). Then dweight is the "
            "transpose of the first array times the second one.",
        ),
        {"general_similarity_backward": F.general_similarity_backward},
    ),
    Exercise(
        "softmax",
        5,
        "softmax for large scores and for -inf",
        '''
import numpy as np


def softmax(x):
    """Return y_i = exp(x_i) / sum_j exp(x_j) over the last axis.

    x  of shape (..., N). Entries may be as large as 1000. Some entries of a row may be -inf (masked).
    Returns y (..., N) with the dtype of x. Each row sums to 1, and an entry of -inf gives 0.
    """
''',
        (Values("", _softmax),),
        (
            "exp(1000) overflows. If you subtract the same number from all entries of a row, y does not "
            "change. Which number helps?",
            "Subtract the largest entry of each row, with keepdims=True. Then no exponent is larger than 0.",
            "Compute e = np.exp(x - x.max(-1, keepdims=True)), and divide it by its sum over the last axis.",
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
    """Return the gradient of y = softmax(x) over the last axis: y_i = exp(x_i) / sum_j exp(x_j).

    dy     the gradient of y, of shape (..., N)
    cache  the output y, of shape (..., N)
    Returns dx (..., N). You do not need an N × N matrix.
    """
    y = cache
''',
        (
            pair_trial("", F.softmax, "softmax_backward", (4, 5)),
            pair_trial("x (2, 3, 5)", F.softmax, "softmax_backward", (2, 3, 5)),
        ),
        (
            "x_j influences every y_i of its row, not only y_j, because exp(x_j) is part of the sum in the "
            "denominator.",
            "The Jacobian is diag(y) - y yᵀ. Multiply it by dy on paper. The result contains only one sum "
            "for each row.",
            "dx_i = y_i · (dy_i - Σ_j dy_j y_j). Use keepdims=True, so that the sum broadcasts.",
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
    """Return y = softmax(q kᵀ / sqrt(K)) v.

    q     (..., T, K)
    k     (..., S, K)
    v     (..., S, L)
    mask  bool, broadcastable to (..., T, S), True where a query may attend to a key; or None
    Returns y (..., T, L).
    """
''',
        (Values("", _attention, numbers=((5, "K"),)),),
        (
            "There are four steps: compute the scores, apply the mask, apply the softmax, and compute the "
            "weighted mean of the values.",
            "The scores are q @ k.swapaxes(-1, -2) / sqrt(K), of shape (..., T, S). K is q.shape[-1].",
            "Before the softmax, np.where(mask, scores, -np.inf) applies the mask. The output is weights @ "
            "v.",
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
''',
        (
            pair_trial("", F.attention, "attention_backward", QUERIES, KEYS, VALUES),
            pair_trial(
                "causal mask", F.attention, "attention_backward", (2, 6, 5), (2, 6, 5), (2, 6, 3), mask=CAUSAL
            ),
            pair_trial(
                HEADS,
                F.attention,
                "attention_backward",
                QUERIES_OF_HEADS,
                KEYS_OF_HEADS,
                VALUES_OF_HEADS,
            ),
        ),
        (
            "The forward pass has three steps: scores, weights, y. Go through them in the opposite order.",
            "y = weights @ v is a matrix product. So dweights = dy vᵀ and dv = weightsᵀ dy, where ᵀ swaps "
            "the last two axes.",
            "dscores = softmax_backward(dweights, weights) * scale. Then dq = dscores @ k and "
            "dk = dscoresᵀ @ q.",
        ),
        {"attention_backward": F.attention_backward},
    ),
)
