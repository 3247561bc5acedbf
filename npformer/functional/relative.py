"""Attention that knows how far apart two words are: Shaw et al. 2018, in two ways that give the same.

What one word is to another is a learned vector, one for each distance up to a largest one and as many
behind: 2 k + 1 of them, the same for all sentences and heads. relative_attention adds them to the keys and
values as each query sees them, as on the paper's page; relative_attention_by_distance never lays those out.
"""

import math
from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.functional.attention import AttentionCache, attention, attention_backward
from npformer.functional.embedding import EmbeddingCache, embedding, embedding_backward
from npformer.functional.linear import LinearCache, linear, linear_backward
from npformer.functional.look_up import WeighCache, weigh, weigh_backward


def clipped_distance(n_queries, n_keys, max_distance, like, start=0):
    """Which vector says where key s stands, seen from query t: clip(s - t, -k, k) + k, counted from 0.

    The queries stand at start, start + 1 .. and the keys at 0, 1 ..; k is max_distance.
    Shapes: -> (T, S) integers from 0 to 2 k, where the array `like` lies.
    Source: Shaw et al. 2018, section 3.2.
    """
    xp = array_module(like)
    query = xp.arange(start, start + n_queries)[:, None]  # (T, 1)
    away = xp.arange(n_keys) - query  # (T, S)
    return xp.clip(away, -max_distance, max_distance) + max_distance


# On the page of the paper: every query has keys and values of its own.


class RelativeAttentionCache(NamedTuple):
    """What relative_attention_backward needs."""

    attention: AttentionCache  # of each query by itself: T is an axis like that of the heads
    key_positions: EmbeddingCache | None
    value_positions: EmbeddingCache | None

    @property
    def weights(self):
        """How much each query looks at each key, (..., T, S)."""
        return self.attention.weights[..., 0, :]


def relative_attention(
    q, k, v, key_positions=None, value_positions=None, mask=None, *, start=0, query_mask=None, **settings
):
    """y_t = Σ_s a_ts (v_s + vpos_ts), with a = softmax_s(q_t · (k_s + kpos_ts) / sqrt(K)).

    kpos_ts and vpos_ts are the rows of key_positions and value_positions for the clipped distance s - t;
    without the one or the other nothing is added there. start is the first query's position among the keys.
    Shapes: q (..., T, K), k (..., S, K), v (..., S, L), key_positions (R, K), value_positions (R, L) with
    R = 2 max_distance + 1; masks and settings as in attention -> y (..., T, L).
    Memory: two arrays (..., T, S, K), which relative_attention_by_distance does without.
    Errors: UserError for an even R, or two that differ. Source: Shaw et al. 2018, equations 3 and 4.
    """
    distance = _distance(q, k, key_positions, value_positions, start)
    keys, of_keys = _seen(k, key_positions, distance)  # (..., T, S, K)
    values, of_values = _seen(v, value_positions, distance)  # (..., T, S, L)
    mask, query_mask = (m if m is None else m[..., None, :] for m in (mask, query_mask))
    y, attended = attention(q[..., None, :], keys, values, mask, query_mask=query_mask, **settings)
    return y[..., 0, :], RelativeAttentionCache(attended, of_keys, of_values)


def relative_attention_backward(dy, cache):
    """Gradients (dq, dk, dv, dkey_positions, dvalue_positions), None for those that were not given."""
    # y of each query by itself
    dq, dkeys, dvalues = attention_backward(dy[..., None, :], cache.attention)
    # keys = k + key_positions[distance], and the same of the values
    dk, dkey_positions = _seen_backward(dkeys, cache.key_positions)
    dv, dvalue_positions = _seen_backward(dvalues, cache.value_positions)
    return dq[..., 0, :], dk, dv, dkey_positions, dvalue_positions


def _seen(x, positions, distance):
    """x + positions[distance]: the keys, or the values, as each query sees them.

    Shapes: x (..., S, K), positions (R, K), distance (T, S) -> (..., T, S, K).
    """
    if positions is None:
        return x[..., None, :, :], None
    of_pair, cache = embedding(distance, positions)  # (T, S, K)
    return x[..., None, :, :] + of_pair, cache


def _seen_backward(dseen, cache):
    """Returns (dx, dpositions)."""
    dx = dseen.sum(-3)  # every query saw x
    if cache is None:
        return dx, None
    # positions[distance] is the same for every sentence and head
    return dx, embedding_backward(dseen.sum(tuple(range(dseen.ndim - 3))), cache)


# By distance: a query meets each of the R vectors once, and not once for every key.


class ByDistanceCache(NamedTuple):
    """What relative_attention_by_distance_backward needs, and what the figures show."""

    q: Any  # (..., T, K) queries
    k: Any  # (..., S, K) keys
    v: Any  # (..., S, L) values
    distance: Any  # (T, S) from 0 to R - 1
    met: LinearCache | None  # each query with each of the R vectors
    weighed: WeighCache
    shared: LinearCache | None  # the values' R vectors, by the sum of the weights at each distance
    scale: float

    @property
    def weights(self):
        """How much each query looks at each key, (..., T, S): rows sum to 1, or are 0."""
        return self.weighed.weights

    @property
    def scores(self):
        """The raw scores (..., T, S), before mask and softmax; computed anew, since backward needs none."""
        key_positions = None if self.met is None else self.met.weight.T
        return _scores(self.q, self.k, key_positions, self.distance)[0] * self.scale


def relative_attention_by_distance(
    q, k, v, key_positions=None, value_positions=None, mask=None, *, start=0, scale=None, **settings
):
    """The same as relative_attention, from products with the R vectors instead of with T S of them.

        q · (k + kpos) = q · k + (q · each of the R vectors), taken at the distance
        Σ_s a_s (v_s + vpos_s) = Σ_s a_s v_s + Σ_r (the sum of a_s over the keys at distance r) vpos_r

    Shapes: as there. Memory: (..., T, R) for keys and for values, and (T, S, R) once for all sentences and
    heads, where the other has (..., T, S, K) for each. Operations: T R K + T S R for T S K.
    Errors: as there. Source: Shaw et al. 2018, section 3.3: the sums of equation 5 taken apart.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    distance = _distance(q, k, key_positions, value_positions, start)
    scores, met = _scores(q, k, key_positions, distance)
    dropped, weighed = weigh(scores * scale, mask, **settings)  # (..., T, S)
    y, shared = dropped @ v, None  # (..., T, L)
    if value_positions is not None:
        share = collect_by_distance(dropped, distance, len(value_positions))  # (..., T, R)
        of_positions, shared = linear(share, value_positions)
        y = y + of_positions
    return y, ByDistanceCache(q, k, v, distance, met, weighed, shared, scale)


def _scores(q, k, key_positions, distance):
    """q kᵀ, and what the positions add to it. Returns (scores (..., T, S), cache)."""
    scores = q @ k.swapaxes(-1, -2)
    if key_positions is None:
        return scores, None
    met, cache = linear(q, key_positions.T)  # (..., T, R)
    return scores + spread_by_distance(met, distance), cache


def relative_attention_by_distance_backward(dy, cache):
    """Gradients (dq, dk, dv, dkey_positions, dvalue_positions), None for those that were not given."""
    q, k, v, distance, met, weighed, shared, scale = cache
    dkey_positions = dvalue_positions = None
    # y = dropped v
    ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = weighed.dropped.swapaxes(-1, -2) @ dy  # (..., S, L)
    if shared is not None:
        # y += collect(dropped) value_positions; collecting backwards is spreading
        dshare, dvalue_positions, _ = linear_backward(dy, shared)
        ddropped = ddropped + spread_by_distance(dshare, distance)
    # dropped = weigh(scores scale)
    dscores = weigh_backward(ddropped, weighed) * scale  # (..., T, S)
    # scores = q kᵀ
    dq = dscores @ k  # (..., T, K)
    dk = dscores.swapaxes(-1, -2) @ q  # (..., S, K)
    if met is not None:
        # scores += spread(q key_positionsᵀ); spreading backwards is collecting
        dmet = collect_by_distance(dscores, distance, met.weight.shape[1])  # (..., T, R)
        dq_met, dkey_positions, _ = linear_backward(dmet, met)
        dq, dkey_positions = dq + dq_met, dkey_positions.T
    return dq, dk, dv, dkey_positions, dvalue_positions


def spread_by_distance(x, distance):
    """y_ts = x_tr at the distance r between query t and key s; backwards it is collect_by_distance.

    Shapes: x (..., T, R), distance (T, S) -> y (..., T, S).
    """
    n_queries, n_distances = x.shape[-2:]
    place = array_module(x).arange(n_queries)[:, None] * n_distances + distance  # (T, S) in x's rows, joined
    return x.reshape(*x.shape[:-2], n_queries * n_distances)[..., place]


def collect_by_distance(y, distance, n_distances):
    """x_tr = Σ y_ts over the keys s at distance r from query t; backwards it is spread_by_distance.

    One product for each query t, of all sentences and heads together. Shapes: y (..., T, S) -> (..., T, R).
    """
    at = distance[..., None] == array_module(y).arange(n_distances)  # (T, S, R) bool
    of_query = y.reshape(-1, *y.shape[-2:]).swapaxes(0, 1)  # (T, N, S) with N sentences and heads
    collected = of_query @ at.astype(y.real.dtype)  # (T, N, R)
    return collected.swapaxes(0, 1).reshape(*y.shape[:-1], n_distances)


def _distance(q, k, key_positions, value_positions, start):
    """The clipped distances (T, S), once it is sure how many there are."""
    counts = {len(positions) for positions in (key_positions, value_positions) if positions is not None}
    if len(counts) > 1:
        raise UserError(
            f"there are {len(key_positions)} vectors for keys and {len(value_positions)} for values: give "
            "as many, one for each distance"
        )
    n_distances = counts.pop() if counts else 1
    if n_distances % 2 == 0:
        raise UserError(
            f"there are {n_distances} vectors for the distances: give 2 k + 1, for those from -k to k"
        )
    return clipped_distance(q.shape[-2], k.shape[-2], n_distances // 2, q, start)
