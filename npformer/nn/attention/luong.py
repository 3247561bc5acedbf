"""Attention layers of recurrent networks: a state of the decoder attends to the states of the encoder.

The encoder's states are the memory. With GlobalAttention, a state of the decoder attends to all positions of
the memory. With the other two layers, it attends to a window of positions: around its own position
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
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.init import default_rng, xavier_uniform
from npformer.nn.linear import Linear
from npformer.nn.module import Module, Parameter
from npformer.validation import require_counts


@cache_class
class GlobalAttentionCache(NamedTuple):
    """The cache of GlobalAttention and of LocalMonotonic."""

    similarity: Any  # the cache of the similarity
    attend: AttendCache
    positions: Array | None  # (B, T) the centres of the windows, or None

    @property
    def weights(self) -> Array:
        """The attention weights, (B, T, S)."""
        return self.attend.weights


class GlobalAttention(Module):
    """Attention to all positions: c_t = Σ_s a_ts m_s, where a_t = softmax over s of similarity(h_t, m_s).

    The queries are the states h_t of the decoder, and m_s are the vectors of the memory.

    Shapes: queries (B, T, N), memory (B, S, M), mask bool (B, S), True at tokens and False at padding ->
    context (B, T, M). The context is 0 for a sentence without tokens. Only LocalMonotonic uses the argument
    `start`. The other layers ignore it. They accept it so that a decoder can call all layers in the same way.

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
    ) -> tuple[Array, GlobalAttentionCache]:
        """Compute the context of each query.

        Args:
            queries: The states of the decoder, of shape (B, T, N).
            memory: The states of the encoder, of shape (B, S, M).
            mask: Bool, of shape (B, S). True at tokens and False at padding. None if there is no padding.
            start: The position of the first query. It has no effect in this layer.

        Returns:
            The context, of shape (B, T, M), and the cache.
        """
        check_queries(queries, memory, self.similarity, type(self).__name__)
        check_token_mask(mask, memory)
        allowed = None if mask is None else mask[:, None]  # (B, 1, S)
        return self._attend(queries, memory, allowed, None)

    def backward(self, dcontext: Array, cache: GlobalAttentionCache) -> tuple[Array, Array]:
        """Return the gradients dqueries (B, T, N) and dmemory (B, S, M)."""
        v = cache.attend.v  # (B, S, M)
        check_gradient(dcontext, (len(v), "T", v.shape[-1]), type(self).__name__)
        # context = softmax(scores) memory
        dscores, dvalues = attend_backward(dcontext, cache.attend)
        # scores = similarity(queries, memory): the memory is used as keys and as values
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        return dqueries, dvalues + dkeys

    def _attend(
        self, queries: Array, memory: Array, allowed: Array | None, positions: Array | None
    ) -> tuple[Array, GlobalAttentionCache]:
        """Compute attention under the mask `allowed`, bool, broadcastable to (B, T, S)."""
        scores, similarity_cache = self.similarity.forward(queries, memory)  # (B, T, S)
        context, attend_cache = attend(scores, memory, allowed)  # (B, T, M)
        return context, GlobalAttentionCache(similarity_cache, attend_cache, positions)


class LocalMonotonic(GlobalAttention):
    """Local-m attention: query t attends only to the positions in the window [t - D, t + D].

    The context is 0 if the window contains no token, which happens more than D positions after the last
    token. Shapes: queries (B, T, N), memory (B, S, M), mask bool (B, S), True at
    tokens and False at padding -> context (B, T, M).

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.
        reach: The half width D of the window.

    Raises:
        UserError: If the mask has another shape or dtype, or if the reach is negative.

    Source: Luong et al. 2015, section 3.2.
    """

    def __init__(self, similarity: Any, *, reach: float = 10) -> None:
        super().__init__(similarity)
        if reach < 0:
            raise UserError(f"reach is {reach}: make it 0 or more")
        self.reach = reach

    def forward(
        self, queries: Array, memory: Array, mask: Array | None = None, *, start: int = 0
    ) -> tuple[Array, GlobalAttentionCache]:
        """Compute the context of each query.

        Args:
            queries: The states of the decoder, of shape (B, T, N).
            memory: The states of the encoder, of shape (B, S, M).
            mask: Bool, of shape (B, S). True at tokens and False at padding. None if there is no padding.
            start: The position of the first query. The others are at start + 1, start + 2, ...

        Returns:
            The context, of shape (B, T, M), and the cache.
        """
        check_queries(queries, memory, self.similarity, type(self).__name__)
        check_token_mask(mask, memory)
        xp = array_module(queries)
        batch, n_queries = queries.shape[:2]
        positions = xp.broadcast_to(start + xp.arange(n_queries), (batch, n_queries))  # p_t = t
        allowed = _window_mask(positions, memory, mask, self.reach)
        return self._attend(queries, memory, allowed, positions)


@cache_class
class LocalPredictiveCache(NamedTuple):
    """The cache of LocalPredictive."""

    memory: Array  # (B, S, M)
    similarity: Any  # the cache of the similarity
    predicted: PredictPositionCache
    gaussian: GaussianWindowCache
    weights: Array  # (B, T, S) attention weights: rows sum to less than 1

    @property
    def positions(self) -> Array:
        """The predicted positions p, the centres of the windows, (B, T)."""
        return self.predicted.p

    @property
    def aligned(self) -> Array:
        """The softmax b inside the window, before it is multiplied by the Gaussian, (B, T, S)."""
        return self.gaussian.weights


class LocalPredictive(Module):
    """Local-p attention: attention in a window around a predicted position, with weights times a Gaussian.

        p_t = S sigmoid(v · tanh(h_t weight)),  where S is the number of tokens without padding
        b_t = softmax of similarity(h_t, m_s) over the positions s in the window [p_t - D, p_t + D]
        a_ts = b_ts exp(-(s - p_t)² / (2 σ²)),  where σ = D / 2
        c_t = Σ_s a_ts m_s

    The parameters v and weight are position_v and position_weight. The tokens are at 0 .. S - 1, and p_t is
    between 0 and S. So a window with D ≥ 1 always contains a token. As a function of p_t, the
    weights jump where a token enters or leaves the window. There they have no derivative. The backward pass
    returns the derivative for a fixed set of tokens in the window.
    Shapes: queries (B, T, N), memory (B, S, M), mask bool (B, S), True at tokens and False at padding ->
    context (B, T, M).

    A small D can stop the learning. At the start p_t is near S / 2 at every position. Adam moves all entries
    of v and of weight by the same amount in each step, and these movements add up in the argument of the
    sigmoid. With D = 4, translators of the built-in corpus had p_t = 0.99 S at every position after 30 steps.
    There the derivative of the sigmoid is near 0, the window contains only the last tokens, and p_t returns
    very slowly. With D = 10, as in the paper, the Gaussian is wide (σ = 5): far tokens keep some weight,
    content decides where to attend, and p_t follows. After 300 steps the validation losses were 0.97 (D = 4),
    0.51 (D = 10) and 0.50 (GlobalAttention). With D = 4, a learning rate of the position that was ten times
    smaller gave 0.52, which shows that the saturation is the cause.

    Args:
        similarity: The layer that compares queries and memory, such as Similarity.
        reach: The half width D of the window.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the mask has another shape or dtype, or if the reach is 0 or less.

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
    ) -> tuple[Array, LocalPredictiveCache]:
        """Compute the context of each query.

        Args:
            queries: The states of the decoder, of shape (B, T, N).
            memory: The states of the encoder, of shape (B, S, M).
            mask: Bool, of shape (B, S). True at tokens and False at padding. None if there is no padding.
            start: The position of the first query. It has no effect in this layer.

        Returns:
            The context, of shape (B, T, M), and the cache.
        """
        check_queries(queries, memory, self.similarity, type(self).__name__)
        check_token_mask(mask, memory)
        xp = array_module(queries)
        lengths = xp.full((len(memory), 1), memory.shape[1]) if mask is None else mask.sum(-1)[:, None]
        positions, predicted = predict_position(
            queries, self.position_weight.value, self.position_v.value, lengths
        )  # (B, T)
        scores, similarity_cache = self.similarity.forward(queries, memory)  # (B, T, S)
        scores, _ = mask_scores(scores, _window_mask(positions, memory, mask, self.reach))
        aligned, _ = softmax(scores)
        weights, gaussian = gaussian_window(aligned, positions, self.reach / 2)
        return weights @ memory, LocalPredictiveCache(memory, similarity_cache, predicted, gaussian, weights)

    def backward(self, dcontext: Array, cache: LocalPredictiveCache) -> tuple[Array, Array]:
        """Return the gradients dqueries (B, T, N) and dmemory (B, S, M)."""
        check_gradient(dcontext, (*cache.weights.shape[:-1], cache.memory.shape[-1]), "LocalPredictive")
        # context = weights memory
        dweights = dcontext @ cache.memory.swapaxes(-1, -2)  # (B, T, S)
        dvalues = cache.weights.swapaxes(-1, -2) @ dcontext  # (B, S, M)
        # weights = gaussian_window(aligned, positions)
        daligned, dpositions = gaussian_window_backward(dweights, cache.gaussian)
        # aligned = softmax(scores); outside the window it is 0, so the gradient of the scores is 0 there
        dscores = softmax_backward(daligned, cache.aligned)
        # scores = similarity(queries, memory): the memory is used as keys and as values
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        # positions = S sigmoid(v · tanh(queries weight)): the second use of the queries
        dqueries_position, dweight, dv = predict_position_backward(dpositions, cache.predicted)
        self.position_weight.accumulate(dweight)
        self.position_v.accumulate(dv)
        return dqueries + dqueries_position, dvalues + dkeys


def _window_mask(positions: Array, memory: Array, mask: Array | None, reach: float) -> Array:
    """Return True at the tokens in the window of each query. Shapes: positions (B, T) -> bool (B, T, S)."""
    inside = inside_window(positions, memory.shape[1], reach)
    return inside if mask is None else inside & mask[:, None]


@cache_class
class AttentionalStateCache(NamedTuple):
    """The cache of AttentionalState."""

    join: LinearCache
    y: Array  # (..., O)


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
        d_out = d_state if d_out is None else d_out
        require_counts(d_context=d_context, d_state=d_state, d_out=d_out)
        self.d_context = d_context
        self.join = Linear(d_context + d_state, d_out, bias=False, rng=rng, dtype=dtype)

    def forward(self, context: Array, state: Array) -> tuple[Array, AttentionalStateCache]:
        """Return y, of shape (..., d_out), and the cache."""
        check_floats(context, (..., self.d_context), "AttentionalState", "context")
        check_floats(
            state,
            (*context.shape[:-1], self.join.weight.shape[0] - self.d_context),
            "AttentionalState",
            "state",
        )
        xp = array_module(context)
        joined, join_cache = self.join.forward(xp.concatenate([context, state], -1))
        y = xp.tanh(joined)
        return y, AttentionalStateCache(join_cache, y)

    def backward(self, dy: Array, cache: AttentionalStateCache) -> tuple[Array, Array]:
        """Return the gradients dcontext (..., d_context) and dstate (..., d_state)."""
        check_gradient(dy, cache.y.shape, "AttentionalState")
        # y = tanh(joined), and tanh' = 1 - tanh²
        dboth = self.join.backward(dy * (1 - cache.y * cache.y), cache.join)
        # both = [context; state]
        return dboth[..., : self.d_context], dboth[..., self.d_context :]
