"""The attentions of recurrent networks: the state of a decoder attends to the states of the encoder.

It attends to all of them (GlobalAttention), or to a window of them. The window is around its own position
(LocalMonotonic) or around a predicted position (LocalPredictive). Bahdanau's additive attention is
GlobalAttention with the similarity "perceptron".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.attend import AttendCache, attend, attend_backward
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.functional.masks import check_token_mask, mask_scores
from npformer.functional.softmax import softmax, softmax_backward
from npformer.functional.window import (
    GaussianWindowCache,
    PredictPositionCache,
    gaussian_window,
    gaussian_window_backward,
    inside_window,
    predict_position,
    predict_position_backward,
)
from npformer.nn.attention.similarity import check_queries
from npformer.nn.checks import check_floats
from npformer.nn.init import default_rng, xavier_uniform
from npformer.nn.linear import Linear
from npformer.nn.module import Module, Parameter


@cache_class
class GlobalAttentionCache(NamedTuple):
    """The cache of GlobalAttention and of LocalMonotonic."""

    similarity: Any  # the cache of the similarity
    attend: AttendCache
    positions: Any  # (B, T) the centres of the windows, or None

    @property
    def weights(self) -> Array:
        """The attention weights, (B, T, S)."""
        return self.attend.weights


class GlobalAttention(Module):
    """Attention to all positions: c_t = Σ_s a_ts m_s, with a_t = softmax over s of similarity(h_t, m_s).

    Shapes: queries (B, T, N), memory (B, S, M), mask bool (B, S), True at tokens and False at padding ->
    context (B, T, M). The context is 0 for a sentence without tokens.
    `start` is the position of the first query, for a decoder that computes one position after another. Only
    LocalMonotonic uses it. The other layers accept it, so that a decoder can call them in the same way.

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.

    Raises:
        UserError: If the mask has another shape or dtype.

    Source: Luong et al. 2015, section 3.1; Bahdanau et al. 2015, section 3.1.
    """

    def __init__(self, similarity: Any) -> None:
        self.similarity = similarity

    def forward(
        self, queries: Array, memory: Array, mask: Array | None = None, *, start: int = 0
    ) -> tuple[Array, Any]:
        """Return (context, cache)."""
        check_queries(queries, memory, self.similarity, type(self).__name__)
        check_token_mask(mask, memory)
        allowed = None if mask is None else mask[:, None]  # (B, 1, S)
        return self._attend(queries, memory, allowed, None)

    def backward(self, dcontext: Array, cache: Any) -> tuple[Array, Array]:
        """Return (dqueries, dmemory)."""
        # context = softmax(scores) memory
        dscores, dvalues = attend_backward(dcontext, cache.attend)
        # scores = similarity(queries, memory): the memory gives both the keys and the values
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        return dqueries, dvalues + dkeys

    def _attend(
        self, queries: Array, memory: Array, allowed: Array | None, positions: Array | None
    ) -> tuple[Array, Any]:
        """Compute attention under a mask `allowed`, bool, broadcastable to (B, T, S)."""
        scores, compared = self.similarity.forward(queries, memory)  # (B, T, S)
        context, attended = attend(scores, memory, allowed)  # (B, T, M)
        return context, GlobalAttentionCache(compared, attended, positions)


class LocalMonotonic(GlobalAttention):
    """Local-m attention: query t attends to the positions in the window [t - D, t + D] only.

    The context is 0 for a query more than D positions behind the last token. Shapes: as in GlobalAttention.

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.
        reach: The half width D of the window.

    Raises:
        UserError: As in GlobalAttention, or if the reach is negative.

    Source: Luong et al. 2015, section 3.2.
    """

    def __init__(self, similarity: Any, *, reach: float = 10) -> None:
        super().__init__(similarity)
        if reach < 0:
            raise UserError(f"reach is {reach}: make it 0 or more")
        self.reach = reach

    def forward(self, queries: Array, memory: Array, mask: Array | None = None, *, start: int = 0) -> Any:
        """Return (context, cache). The queries are at the positions start, start + 1, ..."""
        check_queries(queries, memory, self.similarity, type(self).__name__)
        check_token_mask(mask, memory)
        xp = array_module(queries)
        batch, count = queries.shape[:2]
        positions = xp.broadcast_to(start + xp.arange(count), (batch, count))  # p_t = t
        near = _near(positions, memory, mask, self.reach)
        return self._attend(queries, memory, near, positions)


@cache_class
class LocalPredictiveCache(NamedTuple):
    """The cache of LocalPredictive."""

    memory: Any  # (B, S, M)
    similarity: Any  # the cache of the similarity
    predicted: PredictPositionCache
    gaussian: GaussianWindowCache
    weights: Any  # (B, T, S) attention weights: rows sum to less than 1

    @property
    def positions(self) -> Array:
        """The centres of the windows, (B, T)."""
        return self.predicted.p

    @property
    def aligned(self) -> Array:
        """The softmax inside the window (B, T, S), before the Gaussian."""
        return self.gaussian.weights


class LocalPredictive(Module):
    """Local-p attention: a window [p_t - D, p_t + D] around a predicted position, weighted by a Gaussian.

        p_t = S sigmoid(v · tanh(h_t weight)),  where S is the number of tokens without padding
        a_ts = softmax over the window of similarity(h_t, m_s) · exp(-(s - p_t)² / (2 σ²)),  σ = D / 2
        c_t = Σ_s a_ts m_s

    The parameters v and weight are position_v and position_weight. The tokens are at the positions 0 .. S - 1
    and the padding follows them, so a window with a reach of 1 or more always holds a token. Where an edge of
    the window passes a token, the weights jump and have no derivative. The backward pass returns the
    derivative between the jumps. Shapes: as in GlobalAttention.

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.
        reach: The half width D of the window.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: As in GlobalAttention, or if the reach is 0 or less.

    Source: Luong et al. 2015, section 3.2.
    """

    def __init__(
        self,
        similarity: Any,
        *,
        reach: float = 10,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        if reach <= 0:
            raise UserError(f"reach is {reach}: make it more than 0, since the Gaussian needs a width")
        rng, width = default_rng(rng), similarity.d_query
        self.similarity, self.reach = similarity, reach
        self.position_weight = Parameter(xavier_uniform(rng, (width, width), dtype))
        self.position_v = Parameter(xavier_uniform(rng, (width,), dtype))

    def forward(
        self, queries: Array, memory: Array, mask: Array | None = None, *, start: int = 0
    ) -> tuple[Array, Any]:
        """Return (context, cache)."""
        check_queries(queries, memory, self.similarity, type(self).__name__)
        check_token_mask(mask, memory)
        xp = array_module(queries)
        lengths = xp.full((len(memory), 1), memory.shape[1]) if mask is None else mask.sum(-1)[:, None]
        positions, predicted = predict_position(
            queries, self.position_weight.value, self.position_v.value, lengths
        )  # (B, T)
        scores, compared = self.similarity.forward(queries, memory)  # (B, T, S)
        scores, _ = mask_scores(scores, _near(positions, memory, mask, self.reach))
        aligned, _ = softmax(scores)
        weights, gaussian = gaussian_window(aligned, positions, self.reach / 2)
        return weights @ memory, LocalPredictiveCache(memory, compared, predicted, gaussian, weights)

    def backward(self, dcontext: Array, cache: Any) -> tuple[Array, Array]:
        """Return (dqueries, dmemory)."""
        # context = weights memory
        dweights = dcontext @ cache.memory.swapaxes(-1, -2)  # (B, T, S)
        dvalues = cache.weights.swapaxes(-1, -2) @ dcontext  # (B, S, M)
        # weights = gaussian_window(aligned, positions)
        daligned, dpositions = gaussian_window_backward(dweights, cache.gaussian)
        # aligned = softmax(scores); outside the window it is 0, so the gradient of the scores is 0 there
        dscores = softmax_backward(daligned, cache.aligned)
        # scores = similarity(queries, memory): the memory gives both the keys and the values
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        # positions = S sigmoid(v · tanh(queries weight)): the queries give the positions as well
        dsaid, dweight, dv = predict_position_backward(dpositions, cache.predicted)
        self.position_weight.accumulate(dweight)
        self.position_v.accumulate(dv)
        return dqueries + dsaid, dvalues + dkeys


def _near(positions: Array, memory: Array, mask: Array | None, reach: float) -> Array:
    """Return True inside the window of each query. Shapes: positions (B, T) -> bool (B, T, S)."""
    near = inside_window(positions, memory.shape[1], reach)
    return near if mask is None else near & mask[:, None]


@cache_class
class AttentionalStateCache(NamedTuple):
    """The cache of AttentionalState."""

    join: LinearCache
    y: Any  # (..., O)


class AttentionalState(Module):
    """The attentional state of a decoder: y = tanh([context; state] weight).

    Shapes: context (..., d_context), state (..., d_state) -> y (..., d_out).

    Args:
        d_context: The width of the context.
        d_state: The width of the state of the decoder.
        d_out: The width of y. The default is d_state.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Luong et al. 2015, section 3, equation 5.
    """

    def __init__(
        self,
        d_context: int,
        d_state: int,
        d_out: int | None = None,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.d_context = d_context
        d_out = d_state if d_out is None else d_out
        self.join = Linear(d_context + d_state, d_out, bias=False, rng=rng, dtype=dtype)

    def forward(self, context: Array, state: Array) -> tuple[Array, Any]:
        """Return (y, cache)."""
        check_floats(context, (..., self.d_context), "AttentionalState", "context")
        check_floats(
            state,
            (*context.shape[:-1], self.join.weight.shape[0] - self.d_context),
            "AttentionalState",
            "state",
        )
        xp = array_module(context)
        joined, join = self.join.forward(xp.concatenate([context, state], -1))
        y = xp.tanh(joined)
        return y, AttentionalStateCache(join, y)

    def backward(self, dy: Array, cache: Any) -> tuple[Array, Array]:
        """Return (dcontext, dstate)."""
        # y = tanh(joined), and tanh' = 1 - tanh²
        dboth = self.join.backward(dy * (1 - cache.y * cache.y), cache.join)
        # both = [context; state]
        return dboth[..., : self.d_context], dboth[..., self.d_context :]
