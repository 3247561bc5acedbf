"""Attention with relative positions, Shaw et al. 2018, in two versions with the same result.

There is a learned vector for each distance s - t from -k to k between a query t and a key s. Distances below
-k use the vector of -k, and distances above k that of k. All sentences and heads share the 2 k + 1 vectors.
relative_attention adds them to the keys and values of each query, as in the paper.
relative_attention_by_distance does not store these sums, so it needs less memory.
"""

import math
from typing import Any, NamedTuple

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.attend import AttentionWeightsCache, attention_weights, attention_weights_backward
from npformer.functional.attention import AttentionCache, attention, attention_backward
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache, embedding, embedding_backward
from npformer.functional.half import sums_in_float32
from npformer.functional.linear import LinearCache, linear, linear_backward, sum_to_shape


def clipped_distance(n_queries: int, n_keys: int, max_distance: int, like: Array, start: int = 0) -> Array:
    """Return the index of the vector for each query t and key s: clip(s - t, -k, k) + k.

    Args:
        n_queries: The number of queries T. Their positions are start, start + 1, ...
        n_keys: The number of keys S. Their positions are 0, 1, ...
        max_distance: The largest distance k.
        like: An array on the device where the result is needed.
        start: The position of the first query.

    Returns:
        Integers from 0 to 2 k, of shape (T, S).

    Source: Shaw et al. 2018, section 3.2.
    """
    xp = array_module(like)
    query = xp.arange(start, start + n_queries)[:, None]  # (T, 1)
    distance = xp.arange(n_keys) - query  # (T, S)
    return xp.clip(distance, -max_distance, max_distance) + max_distance


# The formula of the paper: every query has its own keys and values.


@cache_class
class RelativeAttentionCache(NamedTuple):
    """The cache of relative_attention."""

    attention: AttentionCache  # of T separate attentions, each with one query
    key_positions: EmbeddingCache | None
    value_positions: EmbeddingCache | None

    @property
    def weights(self) -> Array:
        """The attention weights, (..., T, S)."""
        return self.attention.weights[..., 0, :]


def relative_attention(
    q: Array,
    k: Array,
    v: Array,
    key_positions: Array | None = None,
    value_positions: Array | None = None,
    mask: Array | None = None,
    *,
    start: int = 0,
    **settings: Any,
) -> tuple[Array, RelativeAttentionCache]:
    """Compute y_t = Σ_s a_ts (v_s + vpos_ts), where a_t = softmax over s of q_t · (k_s + kpos_ts) / sqrt(K).

    kpos_ts and vpos_ts are the rows of key_positions and value_positions for the clipped distance s - t. This
    function stores two arrays (..., T, S, K). relative_attention_by_distance does not.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., S, K).
        v: The values, of shape (..., S, L).
        key_positions: The vectors for the keys, of shape (R, K), where R = 2 max_distance + 1, or None.
        value_positions: The vectors for the values, of shape (R, L), or None.
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.
        start: The position of the first query among the keys.
        settings: The other settings of attention.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If R is even, or if it differs between keys and values.

    Source: Shaw et al. 2018, equations 3 and 4.
    """
    distance = _distance(q, k, key_positions, value_positions, start)
    keys, key_cache = _add_positions(k, key_positions, distance)  # (..., T, S, K)
    values, value_cache = _add_positions(v, value_positions, distance)  # (..., T, S, L)
    # each query has an attention of its own: a new axis of length 1 becomes the axis of its queries
    mask = None if mask is None else mask[..., None, :]
    y, attention_cache = attention(q[..., None, :], keys, values, mask, **settings)
    return y[..., 0, :], RelativeAttentionCache(attention_cache, key_cache, value_cache)


@sums_in_float32
def relative_attention_backward(
    dy: Array, cache: RelativeAttentionCache
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Return the gradients (dq, dk, dv, dkey_positions, dvalue_positions), each shaped like its argument.

    dkey_positions and dvalue_positions are None if key_positions and value_positions were None.
    Shapes: dy (..., T, L).
    """
    # y = attention of each query to its own keys and values
    dq, dkeys, dvalues = attention_backward(dy[..., None, :], cache.attention)
    # keys = k + key_positions[distance], and likewise for the values
    dk, dkey_positions = _add_positions_backward(dkeys, cache.key_positions)
    dv, dvalue_positions = _add_positions_backward(dvalues, cache.value_positions)
    return dq[..., 0, :], dk, dv, dkey_positions, dvalue_positions


def _add_positions(x: Array, positions: Array | None, distance: Array) -> tuple[Array, EmbeddingCache | None]:
    """Return x + positions[distance], which are the keys (or the values) of each query, and the cache.

    Shapes: x (..., S, K), positions (R, K), distance (T, S) -> (..., T, S, K).
    """
    if positions is None:
        return x[..., None, :, :], None
    vectors, cache = embedding(distance, positions)  # (T, S, K)
    return x[..., None, :, :] + vectors, cache


def _add_positions_backward(dy: Array, cache: EmbeddingCache | None) -> tuple[Array, Array | None]:
    """Return the gradients dx (..., S, K) and dpositions (R, K), which is None without positions."""
    dx = dy.sum(-3)  # every query used x
    if cache is None:
        return dx, None
    # every sentence and every head used the same positions[distance]
    return dx, embedding_backward(dy.sum(tuple(range(dy.ndim - 3))), cache)


# By distance: the product of a query and a vector is computed once for each distance, and not for each key.


@cache_class
class ByDistanceCache(NamedTuple):
    """The cache of relative_attention_by_distance. The figures show its weights and scores."""

    q: Array  # (..., T, K) queries
    k: Array  # (..., S, K) keys
    v: Array  # (..., S, L) values
    distance: Array  # (T, S) from 0 to R - 1
    key_product: LinearCache | None  # the cache of the products of the queries and key_positions
    weights_cache: AttentionWeightsCache
    value_product: LinearCache | None  # the cache of the products of the summed weights and value_positions
    scale: float

    @property
    def weights(self) -> Array:
        """The attention weights, (..., T, S). Rows sum to 1, or are 0."""
        return self.weights_cache.weights

    @property
    def mask(self) -> Array | None:
        """The mask, broadcastable to (..., T, S), or None."""
        return self.weights_cache.mask

    @property
    def scores(self) -> Array:
        """The scores (..., T, S) before mask and softmax. They are not stored, but computed on request."""
        key_positions = None if self.key_product is None else self.key_product.weight.T
        return _scores(self.q, self.k, key_positions, self.distance)[0] * self.scale


def relative_attention_by_distance(
    q: Array,
    k: Array,
    v: Array,
    key_positions: Array | None = None,
    value_positions: Array | None = None,
    mask: Array | None = None,
    *,
    start: int = 0,
    scale: float | None = None,
    **settings: Any,
) -> tuple[Array, ByDistanceCache]:
    """Compute the same as relative_attention without storing the sums of keys and vectors.

    The sums of relative_attention are split. If s is at distance r from t, then kpos_ts and vpos_ts are the
    vectors kpos_r and vpos_r, so

        q_t · (k_s + kpos_r) = q_t · k_s + q_t · kpos_r
        Σ_s a_ts (v_s + vpos_r) = Σ_s a_ts v_s + Σ_r (sum of a_ts over the keys s at distance r) vpos_r

    The products q_t · kpos_r are computed once for each of the R distances. This function stores arrays of
    the shape (..., T, R) for keys and values, and one array (T, S, R) for all sentences and heads together.
    It needs T R K + T S R operations instead of T S K.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., S, K).
        v: The values, of shape (..., S, L).
        key_positions: The vectors for the keys, of shape (R, K), where R = 2 max_distance + 1, or None.
        value_positions: The vectors for the values, of shape (R, L), or None.
        mask: Bool, broadcastable to (..., T, S). True means that the query may attend to the key.
        start: The position of the first query among the keys.
        scale: The factor of the scores. The default is 1 / sqrt(K).
        settings: The other settings of attention_weights.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If R is even, or if it differs between keys and values.

    Source: Shaw et al. 2018, section 3.3, which splits equation 5 into these sums.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    distance = _distance(q, k, key_positions, value_positions, start)
    scores, key_product = _scores(q, k, key_positions, distance)
    dropped, weights_cache = attention_weights(scores * scale, mask, **settings)  # (..., T, S)
    y, value_product = dropped @ v, None  # (..., T, L)
    if value_positions is not None:
        share = collect_by_distance(dropped, distance, len(value_positions))  # (..., T, R)
        y_positions, value_product = linear(share, value_positions)
        y = y + y_positions
    return y, ByDistanceCache(q, k, v, distance, key_product, weights_cache, value_product, scale)


def _scores(
    q: Array, k: Array, key_positions: Array | None, distance: Array
) -> tuple[Array, LinearCache | None]:
    """Return q_t · k_s + q_t · kpos_ts, of shape (..., T, S), and the cache of the second product."""
    scores = q @ k.swapaxes(-1, -2)
    if key_positions is None:
        return scores, None
    products, cache = linear(q, key_positions.T)  # (..., T, R)
    return scores + spread_by_distance(products, distance), cache


def relative_attention_by_distance_backward(
    dy: Array, cache: ByDistanceCache
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Return the gradients (dq, dk, dv, dkey_positions, dvalue_positions), each shaped like its argument.

    dkey_positions and dvalue_positions are None if key_positions and value_positions were None.
    Shapes: dy (..., T, L).
    """
    q, k, v, distance, key_product, weights_cache, value_product, scale = cache
    dkey_positions = dvalue_positions = None
    # y = dropped v
    ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = weights_cache.dropped.swapaxes(-1, -2) @ dy  # (..., S, L)
    if value_product is not None:
        # y += share value_positions, where share = collect_by_distance(dropped)
        ddropped = sum_to_shape(ddropped, weights_cache.weights.shape)
        dy_positions = sum_to_shape(dy, (*ddropped.shape[:-1], v.shape[-1]))  # (..., T, L)
        dshare, dvalue_positions, _ = linear_backward(dy_positions, value_product)
        ddropped = ddropped + spread_by_distance(dshare, distance)
    # dropped = attention_weights(scores scale)
    dscores = attention_weights_backward(ddropped, weights_cache) * scale  # (..., T, S)
    # scores = q kᵀ
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    # an array that was broadcast receives the sum of the gradients of its copies
    dq, dk, dv = (sum_to_shape(dx, x.shape) for dx, x in ((dq, q), (dk, k), (dv, v)))
    if key_product is not None:
        # scores += spread_by_distance(products), where products = q key_positionsᵀ
        dproducts = collect_by_distance(dscores, distance, key_product.weight.shape[1])  # (..., T, R)
        dproducts = sum_to_shape(dproducts, (*q.shape[:-1], dproducts.shape[-1]))
        dq_positions, dkey_positions, _ = linear_backward(dproducts, key_product)
        dq, dkey_positions = dq + dq_positions, dkey_positions.T
    return dq, dk, dv, dkey_positions, dvalue_positions


def spread_by_distance(x: Array, distance: Array) -> Array:
    """Return y_ts = x_tr, where r is the distance of key s from query t.

    Its backward pass is collect_by_distance.

    Shapes: x (..., T, R), distance (T, S) -> y (..., T, S).
    """
    n_queries, n_distances = x.shape[-2:]
    # entry (t, r) of x has the index t R + r if the last two axes of x are joined
    index = array_module(x).arange(n_queries)[:, None] * n_distances + distance  # (T, S)
    return x.reshape(*x.shape[:-2], n_queries * n_distances)[..., index]


def collect_by_distance(y: Array, distance: Array, n_distances: int) -> Array:
    """Return x_tr, the sum of y_ts over the keys s at distance r from query t.

    Its backward pass is spread_by_distance. The sums are computed by one matrix product for each query t, for
    all sentences and heads together.

    Args:
        y: An array of shape (..., T, S).
        distance: Integers from 0 to R - 1, of shape (T, S).
        n_distances: The number R of distances.

    Returns:
        x, of shape (..., T, R).
    """
    is_at = distance[..., None] == array_module(y).arange(n_distances)  # (T, S, R) bool
    by_query = y.reshape(-1, *y.shape[-2:]).swapaxes(0, 1)  # (T, N, S), where N counts sentences and heads
    x = by_query @ is_at.astype(y.real.dtype)  # (T, N, R)
    return x.swapaxes(0, 1).reshape(*y.shape[:-1], n_distances)


def _distance(
    q: Array, k: Array, key_positions: Array | None, value_positions: Array | None, start: int
) -> Array:
    """Check the number of vectors and return the clipped distances (T, S)."""
    counts = [len(positions) for positions in (key_positions, value_positions) if positions is not None]
    if len(set(counts)) > 1:
        raise UserError(
            f"there are {counts[0]} vectors for keys and {counts[1]} for values: give "
            "the same number, one for each distance"
        )
    n_distances = counts[0] if counts else 1
    if n_distances % 2 == 0:
        raise UserError(
            f"there are {n_distances} vectors for the distances: give 2 k + 1, for the distances -k to k"
        )
    return clipped_distance(q.shape[-2], k.shape[-2], n_distances // 2, q, start)
