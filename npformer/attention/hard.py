"""Hard attention as a layer: a query reads one place of the memory, drawn by how well it fits."""

from typing import Any, NamedTuple

from npformer.errors import UserError
from npformer.functional.hard import (
    HardLookUpCache,
    hard_look_up,
    hard_look_up_backward,
    straight_through_backward,
)
from npformer.functional.masking import check_words
from npformer.module import Module


class HardAttentionCache(NamedTuple):
    """The cache of HardAttention."""

    similarity: Any  # that of the similarity's pair
    look_up: HardLookUpCache

    @property
    def weights(self):
        """The probability with which each query looks at each place, (B, T, S)."""
        return self.look_up.weights

    @property
    def sample(self):
        """Where it looked, ([N,] B, T, S) bool."""
        return self.look_up.sample

    @property
    def log_prob(self):
        """The logarithm of the probability of that, ([N,] B, T)."""
        return self.look_up.log_prob

    @property
    def entropy(self):
        """How undecided each query was, (B, T)."""
        return self.look_up.entropy


class HardAttention(Module):
    """z_t = m_s, with s ~ Multinoulli(a_t) and a_t = softmax over s of similarity(h_t, m_s).

    The mean over all draws is soft attention, E[z_t] = Σ_s a_ts m_s, which is GlobalAttention.
    train=True draws, from rng, and draws=N does so N times; otherwise the likeliest place is read.
    With straight_through the backward pass takes the choice for the mean: biased, but without rewards.
    Shapes: queries (B, T, K), memory (B, S, M), mask bool (B, S), True where there is something to look at
    -> context (B, T, M), or (N, B, T, M) for N draws. A memory that is masked throughout has the context 0.
    Errors: UserError for a mask of another shape or dtype, and for train=True without rng.
    Source: Xu et al. 2015, section 4.1.
    """

    def __init__(self, similarity, *, straight_through=False):
        self.similarity, self.straight_through = similarity, straight_through

    def forward(self, queries, memory, mask=None, *, train=False, rng=None, draws=None):
        """Returns (context, cache)."""
        if train and rng is None:
            raise UserError("hard attention draws while it learns: give rng=np.random.default_rng(seed)")
        check_words(mask, memory)
        allowed = None if mask is None else mask[:, None]  # (B, 1, S)
        scores, compared = self.similarity.forward(queries, memory)  # (B, T, S)
        drawing = {"rng": rng, "draws": draws} if train else {}
        context, looked = hard_look_up(scores, memory, allowed, **drawing)  # ([N,] B, T, M)
        return context, HardAttentionCache(compared, looked)

    def backward(self, dcontext, cache, *, dlog_prob=None, dentropy=None):
        """Returns (dqueries, dmemory). What the choices learn comes from functional.score_function.

        Shapes: dlog_prob broadcastable to ([N,] B, T), dentropy to (B, T).
        Errors: UserError for rewards where the gradient goes straight through.
        """
        if self.straight_through:
            if dlog_prob is not None or dentropy is not None:
                raise UserError(
                    "with straight_through the scores learn from dcontext alone: leave out the rest"
                )
            dscores, dvalues = straight_through_backward(dcontext, cache.look_up)
        else:
            dscores, dvalues = hard_look_up_backward(
                dcontext, cache.look_up, dlog_prob=dlog_prob, dentropy=dentropy
            )
        # scores = similarity(queries, memory): the memory is both what is compared and what is read
        dqueries, dkeys = self.similarity.backward(dscores, cache.similarity)
        return dqueries, dvalues + dkeys


class MovingBaseline:
    """b_k = .9 b_{k-1} + .1 log p(y | s_k): what an answer is usually worth; b_0 is 0.

    Take its value for score_function first and move it then: the gradient of draw k wants b_{k-1}. With b_k
    in its place, which has seen the draw, log p - b_k = .9 (log p - b_{k-1}), and the choices would learn
    at nine tenths of the rate (for N draws: 1 - .1 / N).
    Source: Xu et al. 2015, section 4.1.
    """

    def __init__(self, decay=0.9):
        if not 0 <= decay <= 1:
            raise UserError(f"decay is {decay}: it is a share, from 0 to 1")
        self.decay, self.value = decay, 0.0

    def update(self, log_likelihood):
        """Move it towards the mean of the last draws. Shapes: log_likelihood (...)."""
        self.value = self.decay * self.value + (1 - self.decay) * float(log_likelihood.mean())
