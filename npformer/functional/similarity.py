"""Four similarities of a query and a key, with their backward passes.

The Transformer uses the dot product, divided by sqrt(K). The attention of recurrent networks uses all four:
Bahdanau et al. 2015 (perceptron), Luong et al. 2015, section 3.1 (dot, general, concat). The leading axes of
queries and keys broadcast.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32
from npformer.functional.linear import sum_to_shape


@cache_class
class DotSimilarityCache(NamedTuple):
    """The cache of dot_similarity."""

    q: Array  # (..., T, K)
    k: Array  # (..., S, K)


def dot_similarity(q: Array, k: Array) -> tuple[Array, DotSimilarityCache]:
    """Compute score_ts = q_t · k_s, which is large if both vectors are long and have similar directions.

    Shapes: q (..., T, K), k (..., S, K) -> scores (..., T, S).

    Source: Luong et al. 2015, section 3.1.
    """
    return q @ k.swapaxes(-1, -2), DotSimilarityCache(q, k)


def dot_similarity_backward(dscores: Array, cache: DotSimilarityCache) -> tuple[Array, Array]:
    """Return the gradients dq (..., T, K) and dk (..., S, K) of scores = q kᵀ."""
    q, k = cache
    # scores = q kᵀ
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    return sum_to_shape(dq, q.shape), sum_to_shape(dk, k.shape)


@cache_class
class GeneralSimilarityCache(NamedTuple):
    """The cache of general_similarity."""

    q: Array  # (..., T, K)
    k: Array  # (..., S, L)
    weight: Array  # (K, L)
    projected: Array  # (..., T, L) the queries multiplied by the weight


def general_similarity(q: Array, k: Array, weight: Array) -> tuple[Array, GeneralSimilarityCache]:
    """Compute score_ts = q_tᵀ weight k_s, the dot product of the key and the query times a learned matrix.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., S, L).
        weight: The matrix, of shape (K, L).

    Returns:
        The scores, of shape (..., T, S), and the cache.

    Source: Luong et al. 2015, section 3.1.
    """
    projected = q @ weight  # (..., T, L)
    return projected @ k.swapaxes(-1, -2), GeneralSimilarityCache(q, k, weight, projected)


def general_similarity_backward(dscores: Array, cache: GeneralSimilarityCache) -> tuple[Array, Array, Array]:
    """Return the gradients dq (..., T, K), dk (..., S, L) and dweight (K, L) of scores = q weight kᵀ."""
    q, k, weight, projected = cache
    # scores = projected kᵀ
    dprojected = dscores @ k  # (..., T, L)
    dk = dscores.swapaxes(-1, -2) @ projected  # (..., S, L)
    dprojected, dk = sum_to_shape(dprojected, projected.shape), sum_to_shape(dk, k.shape)
    # projected = q weight
    dq = dprojected @ weight.T  # (..., T, K)
    dweight = _rows(q).T @ _rows(dprojected)  # (K, L)
    return dq, dk, dweight


@cache_class
class ConcatSimilarityCache(NamedTuple):
    """The cache of concat_similarity."""

    q: Array  # (..., T, K)
    k: Array  # (..., S, L)
    weight: Array  # (K + L,)


def concat_similarity(q: Array, k: Array, weight: Array) -> tuple[Array, ConcatSimilarityCache]:
    """Compute score_ts = weight · [q_t; k_s], a linear function of the concatenated query and key.

    The score is the sum of a number that depends only on the query and a number that depends only on the key.
    Adding the same number to all scores of a query does not change the softmax. So all queries have the same
    attention weights. The tanh of perceptron_similarity prevents this.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., S, L).
        weight: The vector, of shape (K + L,).

    Returns:
        The scores, of shape (..., T, S), and the cache.

    Source: Luong et al. 2015, section 3.1, in its linear form.
    """
    width = q.shape[-1]
    # weight · [q; k] = weight[:K] · q + weight[K:] · k, so the vectors need not be concatenated
    of_query, of_key = q @ weight[:width], k @ weight[width:]  # (..., T) and (..., S)
    return of_query[..., :, None] + of_key[..., None, :], ConcatSimilarityCache(q, k, weight)


@sums_in_float32
def concat_similarity_backward(dscores: Array, cache: ConcatSimilarityCache) -> tuple[Array, Array, Array]:
    """Return the gradients dq (..., T, K), dk (..., S, L) and dweight (K + L,)."""
    q, k, weight = cache
    xp = array_module(q)
    width = q.shape[-1]
    # score_ts = of_query_t + of_key_s: of_query_t is used for all keys s, and of_key_s for all queries t
    dof_query, dof_key = dscores.sum(-1), dscores.sum(-2)  # (..., T) and (..., S)
    dof_query, dof_key = sum_to_shape(dof_query, q.shape[:-1]), sum_to_shape(dof_key, k.shape[:-1])
    # of_query = q weight[:K], of_key = k weight[K:]
    dq = dof_query[..., None] * weight[:width]  # (..., T, K)
    dk = dof_key[..., None] * weight[width:]  # (..., S, L)
    dhalves = [dof_query.reshape(-1) @ _rows(q), dof_key.reshape(-1) @ _rows(k)]
    return dq, dk, xp.concatenate(dhalves)


@cache_class
class PerceptronSimilarityCache(NamedTuple):
    """The cache of perceptron_similarity."""

    q: Array  # (..., T, K)
    k: Array  # (..., S, L)
    query_weight: Array  # (K, J)
    key_weight: Array  # (L, J)
    v: Array  # (J,)
    hidden: Array  # (..., T, S, J) tanh of the sum


def perceptron_similarity(
    q: Array, k: Array, query_weight: Array, key_weight: Array, v: Array
) -> tuple[Array, PerceptronSimilarityCache]:
    """Compute score_ts = v · tanh(q_t query_weight + k_s key_weight), a network with one hidden layer.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., S, L).
        query_weight: The matrix of the queries, of shape (K, J).
        key_weight: The matrix of the keys, of shape (L, J).
        v: The vector of the output, of shape (J,).

    Returns:
        The scores, of shape (..., T, S), and the cache.

    Source: Bahdanau et al. 2015, section A.1.2.
    """
    xp = array_module(q)
    of_query, of_key = q @ query_weight, k @ key_weight  # (..., T, J) and (..., S, J)
    hidden = xp.tanh(of_query[..., :, None, :] + of_key[..., None, :, :])  # (..., T, S, J)
    return hidden @ v, PerceptronSimilarityCache(q, k, query_weight, key_weight, v, hidden)


@sums_in_float32
def perceptron_similarity_backward(
    dscores: Array, cache: PerceptronSimilarityCache
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the gradients (dq, dk, dquery_weight, dkey_weight, dv), each shaped like its argument.

    Shapes: dscores (..., T, S).
    """
    q, k, query_weight, key_weight, v, hidden = cache
    # scores = hidden v
    dhidden = dscores[..., None] * v  # (..., T, S, J)
    dv = dscores.reshape(-1) @ _rows(hidden)  # (J,)
    # hidden = tanh(total), and tanh' = 1 - tanh²
    dtotal = dhidden * (1 - hidden * hidden)  # (..., T, S, J)
    # total = of_query + of_key, each broadcast over the axis of the other
    dof_query, dof_key = dtotal.sum(-2), dtotal.sum(-3)  # (..., T, J) and (..., S, J)
    dof_query = sum_to_shape(dof_query, (*q.shape[:-1], len(v)))
    dof_key = sum_to_shape(dof_key, (*k.shape[:-1], len(v)))
    # of_query = q query_weight, of_key = k key_weight
    dq = dof_query @ query_weight.T  # (..., T, K)
    dk = dof_key @ key_weight.T  # (..., S, L)
    dquery_weight = _rows(q).T @ _rows(dof_query)  # (K, J)
    dkey_weight = _rows(k).T @ _rows(dof_key)  # (L, J)
    return dq, dk, dquery_weight, dkey_weight, dv


def _rows(x: Array) -> Array:
    """Return an array with every position of every sentence as a row. Shapes: x (..., N) -> (R, N)."""
    return x.reshape(-1, x.shape[-1])
