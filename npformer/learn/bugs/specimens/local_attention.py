"""A specimen with a bug: attention to a window around a predicted position."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import (
    gaussian_window,
    gaussian_window_backward,
    inside_window,
    mask_scores,
    predict_position,
    predict_position_backward,
    softmax,
    softmax_backward,
)
from npformer.nn.attention import Similarity
from npformer.nn.init import xavier_uniform
from npformer.nn.module import Module, Parameter


class LocalAttentionCache(NamedTuple):
    """The cache of LocalAttention."""

    memory: Any  # (B, S, M)
    score: Any
    predicted: Any
    gaussian: Any
    weights: Any  # (B, T, S)


class LocalAttention(Module):
    """c_t = Σ_s a_ts m_s, with a_ts = softmax in [p_t - D, p_t + D] of q_t weight m_s, times a Gaussian.

    p_t = S sigmoid(v · tanh(q_t position)); the Gaussian has its maximum at p_t and the width D / 2.
    Shapes: queries (B, T, N), memory (B, S, M), mask bool (B, S), True at tokens -> context (B, T, M).
    """

    def __init__(self, d_query=4, d_memory=6, *, reach=2, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.reach = reach
        self.score = Similarity("general", d_query, d_memory, rng=rng, dtype=dtype)
        self.position = Parameter(xavier_uniform(rng, (d_query, d_query), dtype))
        self.v = Parameter(xavier_uniform(rng, (d_query,), dtype))

    def forward(self, queries, memory, mask):
        """Return (context, cache)."""
        length = np.full((len(memory), 1), memory.shape[1])  # (B, 1): S tokens
        p, predicted = predict_position(queries, self.position.value, self.v.value, length)  # (B, T)
        near = inside_window(p, memory.shape[1], self.reach) & mask[:, None]  # (B, T, S)
        scores, score = self.score.forward(queries, memory)  # (B, T, S)
        aligned, _ = softmax(mask_scores(scores, near)[0])
        weights, gaussian = gaussian_window(aligned, p, self.reach / 2)
        return weights @ memory, LocalAttentionCache(memory, score, predicted, gaussian, weights)

    def backward(self, dcontext, cache):
        """Return (dqueries, dmemory)."""
        # context = weights memory
        dweights = dcontext @ cache.memory.swapaxes(-1, -2)  # (B, T, S)
        dread = cache.weights.swapaxes(-1, -2) @ dcontext  # (B, S, M)
        # weights = softmax(scores) times the Gaussian around p
        daligned, dp = gaussian_window_backward(dweights, cache.gaussian)
        dqueries, dcompared = self.score.backward(
            softmax_backward(daligned, cache.gaussian.weights), cache.score
        )
        # p = S sigmoid(v · tanh(queries position))
        dpointing, dposition, dv = predict_position_backward(dp, cache.predicted)
        self.position.grad += dposition
        self.v.grad += dv
        return dqueries + dpointing, dread + dcompared
