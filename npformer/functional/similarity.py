"""Four ways to score how alike a query and a key are, each with its backward pass.

The Transformer uses the first, scaled. The others come from the attention that recurrent networks had:
Bahdanau et al. 2015 (perceptron), Luong et al. 2015, section 3.1 (dot, general, concat).
"""

from typing import Any, NamedTuple

from npformer.backend import array_module


class DotSimilarityCache(NamedTuple):
    """What dot_similarity_backward needs."""

    q: Any  # (..., T, K)
    k: Any  # (..., S, K)


def dot_similarity(q, k):
    """score_ts = q_t · k_s: large where the two vectors point the same way.

    Shapes: q (..., T, K), k (..., S, K) -> scores (..., T, S). Source: Luong et al. 2015, section 3.1.
    """
    return q @ k.swapaxes(-1, -2), DotSimilarityCache(q, k)


def dot_similarity_backward(dscores, cache):
    """Gradients (dq, dk) of scores = q kᵀ."""
    q, k = cache
    # scores = q kᵀ
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    return dq, dk


class GeneralSimilarityCache(NamedTuple):
    """What general_similarity_backward needs."""

    q: Any  # (..., T, K)
    k: Any  # (..., S, L)
    weight: Any  # (K, L)
    turned: Any  # (..., T, L) the queries in the keys' space


def general_similarity(q, k, weight):
    """score_ts = q_tᵀ weight k_s: a dot product after a learned map; the two widths may differ.

    Shapes: q (..., T, K), k (..., S, L), weight (K, L) -> scores (..., T, S).
    Source: Luong et al. 2015, section 3.1.
    """
    turned = q @ weight  # (..., T, L)
    return turned @ k.swapaxes(-1, -2), GeneralSimilarityCache(q, k, weight, turned)


def general_similarity_backward(dscores, cache):
    """Gradients (dq, dk, dweight) of scores = q weight kᵀ."""
    q, k, weight, turned = cache
    # scores = turned kᵀ
    dturned = dscores @ k  # (..., T, L)
    dk = dscores.swapaxes(-1, -2) @ turned  # (..., S, L)
    # turned = q weight
    dq = dturned @ weight.T  # (..., T, K)
    dweight = _rows(q).T @ _rows(dturned)  # (K, L) every query added to it
    return dq, dk, dweight


class ConcatSimilarityCache(NamedTuple):
    """What concat_similarity_backward needs."""

    q: Any  # (..., T, K)
    k: Any  # (..., S, L)
    weight: Any  # (K + L,)


def concat_similarity(q, k, weight):
    """score_ts = weight · [q_t; k_s]: one linear map of the two side by side.

    It is a sum of two numbers, one of the query alone and one of the key alone, so a softmax over the keys
    cancels the query: every query then looks at the same keys. The perceptron mends that with a tanh.
    Shapes: q (..., T, K), k (..., S, L), weight (K + L,) -> scores (..., T, S).
    Source: Luong et al. 2015, section 3.1, in its linear form.
    """
    width = q.shape[-1]
    of_query, of_key = q @ weight[:width], k @ weight[width:]  # (..., T) and (..., S)
    # weight · [q; k] = weight[:K] · q + weight[K:] · k, so no pair is ever laid side by side
    return of_query[..., :, None] + of_key[..., None, :], ConcatSimilarityCache(q, k, weight)


def concat_similarity_backward(dscores, cache):
    """Gradients (dq, dk, dweight) of scores = weight · [q; k]."""
    q, k, weight = cache
    xp = array_module(q)
    width = q.shape[-1]
    # scores = of_query + of_key: each query's number went to all keys, each key's to all queries
    dof_query, dof_key = dscores.sum(-1), dscores.sum(-2)  # (..., T) and (..., S)
    # of_query = q weight[:K], of_key = k weight[K:]
    dq = dof_query[..., None] * weight[:width]  # (..., T, K)
    dk = dof_key[..., None] * weight[width:]  # (..., S, L)
    dhalves = [dof_query.reshape(-1) @ _rows(q), dof_key.reshape(-1) @ _rows(k)]
    return dq, dk, xp.concatenate(dhalves)


class PerceptronSimilarityCache(NamedTuple):
    """What perceptron_similarity_backward needs."""

    q: Any  # (..., T, K)
    k: Any  # (..., S, L)
    query_weight: Any  # (K, J)
    key_weight: Any  # (L, J)
    v: Any  # (J,)
    hidden: Any  # (..., T, S, J) tanh of the sum


def perceptron_similarity(q, k, query_weight, key_weight, v):
    """score_ts = v · tanh(q_t query_weight + k_s key_weight): a small network looks at the pair.

    Shapes: q (..., T, K), k (..., S, L), query_weight (K, J), key_weight (L, J), v (J,)
    -> scores (..., T, S). Source: Bahdanau et al. 2015, section A.1.2.
    """
    xp = array_module(q)
    of_query, of_key = q @ query_weight, k @ key_weight  # (..., T, J) and (..., S, J)
    hidden = xp.tanh(of_query[..., :, None, :] + of_key[..., None, :, :])  # (..., T, S, J)
    return hidden @ v, PerceptronSimilarityCache(q, k, query_weight, key_weight, v, hidden)


def perceptron_similarity_backward(dscores, cache):
    """Gradients (dq, dk, dquery_weight, dkey_weight, dv) of scores = v · tanh(q W + k U)."""
    q, k, query_weight, key_weight, v, hidden = cache
    # scores = hidden v
    dhidden = dscores[..., None] * v  # (..., T, S, J)
    dv = dscores.reshape(-1) @ _rows(hidden)  # (J,)
    # hidden = tanh(total), and tanh' = 1 - tanh²
    dtotal = dhidden * (1 - hidden * hidden)  # (..., T, S, J)
    # total = of_query + of_key, each spread over the other's axis
    dof_query, dof_key = dtotal.sum(-2), dtotal.sum(-3)  # (..., T, J) and (..., S, J)
    # of_query = q query_weight, of_key = k key_weight
    dq = dof_query @ query_weight.T  # (..., T, K)
    dk = dof_key @ key_weight.T  # (..., S, L)
    dquery_weight = _rows(q).T @ _rows(dof_query)  # (K, J)
    dkey_weight = _rows(k).T @ _rows(dof_key)  # (L, J)
    return dq, dk, dquery_weight, dkey_weight, dv


def _rows(x):
    """Every position of every sentence as a row. Shapes: x (..., N) -> (R, N)."""
    return x.reshape(-1, x.shape[-1])
