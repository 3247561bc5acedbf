"""The attentions of recurrent networks: a decoder's state looks at the encoder's states.

It looks at all of them (GlobalAttention), or at a window round a position that is its own (LocalMonotonic)
or predicted (LocalPredictive). Bahdanau's additive attention is GlobalAttention with a perceptron.
"""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.functional.linear import LinearCache
from npformer.functional.look_up import LookUpCache, look_up, look_up_backward
from npformer.functional.masking import check_words, mask_scores
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
from npformer.layers.init import default_rng, xavier_uniform
from npformer.layers.linear import Linear
from npformer.module import Module, Parameter


class GlobalAttentionCache(NamedTuple):
    """The cache of GlobalAttention and of LocalMonotonic."""

    similarity: Any  # that of the similarity's pair
    look_up: LookUpCache
    positions: Any  # (B, T) where the windows stand, or None

    @property
    def weights(self):
        """How much each query looks at each word, (B, T, S)."""
        return self.look_up.weights


class GlobalAttention(Module):
    """c_t = Σ_s a_ts m_s, with a_t = softmax over s of similarity(h_t, m_s): every word can be looked at.

    Shapes: queries (B, T, N), memory (B, S, M), mask bool (B, S), True at the words and False at the padding
    -> context (B, T, M). A sentence without words has the context 0.
    start is the position of the first query, for a decoder that goes word by word. LocalMonotonic needs it;
    the others take it so that all are called alike.
    Errors: UserError for a mask of another shape or dtype.
    Source: Luong et al. 2015, section 3.1; Bahdanau et al. 2015, section 3.1.
    """

    def __init__(self, similarity):
        self.similarity = similarity

    def forward(self, queries, memory, mask=None, *, start=0):
        """Returns (context, cache)."""
        check_words(mask, memory)
        allowed = None if mask is None else mask[:, None]  # (B, 1, S)
        return self._look(queries, memory, allowed, None)

    def backward(self, dcontext, cache):
        """Returns (dqueries, dmemory)."""
        # context = softmax(scores) memory
        dscores, dvalues = look_up_backward(dcontext, cache.look_up)
        # scores = similarity(queries, memory): the memory is both what is compared and what is read
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        return dqueries, dvalues + dkeys

    def _look(self, queries, memory, allowed, positions):
        """What all windows share. Shapes: allowed bool broadcastable to (B, T, S)."""
        scores, compared = self.similarity.forward(queries, memory)  # (B, T, S)
        context, looked = look_up(scores, memory, allowed)  # (B, T, M)
        return context, GlobalAttentionCache(compared, looked, positions)


class LocalMonotonic(GlobalAttention):
    """Attention to the words in [t - D, t + D] alone, where t is the query's own position: local-m.

    D is called reach. A query more than D places behind the last word sees nothing: its context is 0.
    Shapes: as in GlobalAttention. Errors: UserError as there, and for a negative reach.
    Source: Luong et al. 2015, section 3.2.
    """

    def __init__(self, similarity, *, reach=10):
        super().__init__(similarity)
        if reach < 0:
            raise UserError(f"reach is {reach}: it is a distance, so 0 or more")
        self.reach = reach

    def forward(self, queries, memory, mask=None, *, start=0):
        """The queries stand at start, start + 1 ... Returns (context, cache)."""
        check_words(mask, memory)
        xp = array_module(queries)
        batch, count = queries.shape[:2]
        positions = xp.broadcast_to(start + xp.arange(count), (batch, count))  # p_t = t
        near = _near(positions, memory, mask, self.reach)
        return self._look(queries, memory, near, positions)


class LocalPredictiveCache(NamedTuple):
    """The cache of LocalPredictive."""

    memory: Any  # (B, S, M)
    similarity: Any  # that of the similarity's pair
    predicted: PredictPositionCache
    gaussian: GaussianWindowCache
    weights: Any  # (B, T, S) how much each query looks at each word: rows sum to less than 1

    @property
    def positions(self):
        """Where the windows stand, (B, T)."""
        return self.predicted.p

    @property
    def aligned(self):
        """The softmax inside the window (B, T, S), before the Gaussian."""
        return self.gaussian.weights


class LocalPredictive(Module):
    """Attention to the words in [p - D, p + D], the nearer to p the more, where p is predicted: local-p.

        p_t = S sigmoid(v · tanh(h_t weight))                             S counts the words, not the padding
        a_ts = softmax over the window of similarity(h_t, m_s) · exp(-(s - p_t)² / (2 σ²)),  σ = D / 2
        c_t = Σ_s a_ts m_s

    D is called reach; v and weight are position_v and position_weight. Words stand at 0 .. S - 1, before the
    padding; with a reach of 1 or more the window always holds one. Where the edge of the window passes a word
    the weights jump, and there is no gradient: those here are of the smooth stretches in between.
    Shapes: as in GlobalAttention. Errors: UserError as there, and for a reach of 0 or less.
    Source: Luong et al. 2015, section 3.2.
    """

    def __init__(self, similarity, *, reach=10, rng=None, dtype=np.float32):
        if reach <= 0:
            raise UserError(f"reach is {reach}: the Gaussian needs a width, so more than 0")
        rng, width = default_rng(rng), similarity.d_query
        self.similarity, self.reach = similarity, reach
        self.position_weight = Parameter(xavier_uniform(rng, (width, width), dtype))
        self.position_v = Parameter(xavier_uniform(rng, (width,), dtype))

    def forward(self, queries, memory, mask=None, *, start=0):
        """Returns (context, cache)."""
        check_words(mask, memory)
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

    def backward(self, dcontext, cache):
        """Returns (dqueries, dmemory)."""
        # context = weights memory
        dweights = dcontext @ cache.memory.swapaxes(-1, -2)  # (B, T, S)
        dvalues = cache.weights.swapaxes(-1, -2) @ dcontext  # (B, S, M)
        # weights = gaussian_window(aligned, positions)
        daligned, dpositions = gaussian_window_backward(dweights, cache.gaussian)
        # aligned = softmax(scores); outside the window it is 0, which lets nothing through
        dscores = softmax_backward(daligned, cache.aligned)
        # scores = similarity(queries, memory): the memory is both what is compared and what is read
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        # positions = S sigmoid(v · tanh(queries weight)): the queries have said where, too
        dsaid, dweight, dv = predict_position_backward(dpositions, cache.predicted)
        self.position_weight.grad += dweight
        self.position_v.grad += dv
        return dqueries + dsaid, dvalues + dkeys


def _near(positions, memory, mask, reach):
    """The words inside each query's window. Shapes: positions (B, T) -> bool (B, T, S)."""
    near = inside_window(positions, memory.shape[1], reach)
    return near if mask is None else near & mask[:, None]


class AttentionalStateCache(NamedTuple):
    """The cache of AttentionalState."""

    join: LinearCache
    y: Any  # (..., O)


class AttentionalState(Module):
    """y = tanh([context; state] weight): what was read and what the decoder is about, made one.

    Shapes: context (..., d_context), state (..., d_state) -> y (..., d_out); d_out is d_state unless given.
    Source: Luong et al. 2015, section 3, equation 5.
    """

    def __init__(self, d_context, d_state, d_out=None, *, rng=None, dtype=np.float32):
        self.d_context = d_context
        d_out = d_state if d_out is None else d_out
        self.join = Linear(d_context + d_state, d_out, bias=False, rng=rng, dtype=dtype)

    def forward(self, context, state):
        """Returns (y, cache)."""
        xp = array_module(context)
        joined, join = self.join.forward(xp.concatenate([context, state], -1))
        y = xp.tanh(joined)
        return y, AttentionalStateCache(join, y)

    def backward(self, dy, cache):
        """Returns (dcontext, dstate)."""
        # y = tanh(joined), and tanh' = 1 - tanh²
        dboth = self.join.backward(dy * (1 - cache.y * cache.y), cache.join)
        # both = [context; state]
        return dboth[..., : self.d_context], dboth[..., self.d_context :]
