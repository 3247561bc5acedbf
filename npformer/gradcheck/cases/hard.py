"""Cases of hard attention: what is smooth in it, with the draws held fast."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.attention import HardAttention, Similarity
from npformer.attention.estimates import estimate, expected_loss
from npformer.attention.hard_task import PLACES, SYMBOLS, Reader
from npformer.functional.hard import HardLookUpCache, straight_through_backward
from npformer.gradcheck.cases.case import FF, B, Case, D, S, T, floats, given, make_case, pair_case
from npformer.gradcheck.cases.recurrent import WORDS


def hard_cases() -> Iterator[Case]:
    """The choice, its probability, the entropy, and the layer that learns by all three."""
    scores, v, mask = floats(B, T, S), floats(B, S, D), WORDS[:, None]
    look_up = (F.hard_look_up, F.hard_look_up_backward)
    yield pair_case("hard look-up", look_up, scores, v, rng=5)
    yield pair_case("hard look-up, likeliest, mask", look_up, scores, v, mask=mask)
    yield pair_case("hard look-up, 3 draws, mask", look_up, scores, v, mask=mask, rng=5, draws=3)
    log_probability = (F.log_probability, F.log_probability_backward)
    for name, draws in {"": None, ", 3 draws": 3}.items():
        sample = given(
            F.multinoulli(np.broadcast_to(mask / mask.sum(-1, keepdims=True), (B, T, S)), _rng(), draws)
        )
        yield pair_case(f"log-probability of a choice{name}", log_probability, scores, sample)
        yield pair_case(
            f"log-probability of a choice, mask{name}", log_probability, scores, sample, mask=mask
        )
    entropy = (F.entropy, F.entropy_backward)
    yield pair_case("entropy", entropy, scores)
    yield pair_case("entropy, mask", entropy, scores, mask=mask)
    yield pair_case("straight through, as soft attention", _straight_through(mask), scores)
    yield make_case("score function, all draws", _Expected, floats(1, 2, 3), floats(1, 3, 3))
    settings = {"mask": WORDS, "train": True, "rng": 5}
    for name, draws in {"": None, ", 3 draws": 3}.items():
        inputs = (floats(B, T, D), floats(B, S, FF))
        yield make_case(f"HardAttention{name}", _Surrogate, *inputs, draws=draws, **settings)
    places = floats(B, 1, PLACES), floats(B, PLACES, PLACES + SYMBOLS)
    yield make_case("Reader, soft", lambda rng: Reader("soft", rng=rng), *places)
    drawing = {"train": True, "rng": 5, "draws": 3}
    yield make_case("Reader, hard, 3 draws", lambda rng: Reader("hard", rng=rng), *places, **drawing)


def _rng():
    return np.random.default_rng(5)


def _straight_through(mask):
    """Its gradient to the scores is that of soft attention, whatever was drawn."""
    v = _rng().standard_normal((B, S, D))
    return lambda scores: _soft(scores, v, mask), lambda dz, cache: straight_through_backward(dz, cache)[0]


def _soft(scores, v, mask):
    z, cache = F.look_up(scores, v, mask)
    return z, HardLookUpCache(v, F.multinoulli(cache.weights, _rng()), cache.weights)


class SmallAnswer:
    """log p(y | s) = log softmax(tanh(Σ_t z_t weight_t))_1: an answer of all that was read, choices together.

    Shapes: z (N, B, T, L), weight (T, L, C) -> (N, B).
    """

    def __init__(self, rng, n_queries=2, width=3):
        self.weight = 2 * rng.standard_normal((n_queries, width, 4))

    def forward(self, z):
        """Returns (log_likelihood, cache)."""
        hidden = np.tanh(np.einsum("nbtl,tlc->nbc", z, self.weight))
        log_probs, _ = F.log_softmax(hidden)
        return log_probs[..., 1], (hidden, log_probs)

    def backward(self, dlog_likelihood, cache):
        """Returns dz."""
        hidden, log_probs = cache
        dlog_probs = np.zeros_like(log_probs)
        dlog_probs[..., 1] = dlog_likelihood
        dsum = F.log_softmax_backward(dlog_probs, log_probs) * (1 - hidden * hidden)
        return np.einsum("nbc,tlc->nbtl", dsum, self.weight)


class _Expected:
    """The loss over all draws, whose gradient must be the mean of the draws' gradients."""

    def __init__(self, rng):
        answer = SmallAnswer(rng)
        self.answer = answer.forward, answer.backward
        self.mask = np.array([[[True] * 3, [True, False, True]]])  # (1, 2, 3)

    def forward(self, scores, v):
        loss = expected_loss(scores, v, self.answer, self.mask, entropy_weight=0.3)
        return loss, (scores, v)

    def backward(self, dloss, cache):
        settings: dict[str, Any] = {"baseline": -0.7, "entropy_weight": 0.3}
        scores, v = cache
        mean = estimate(scores, v, self.answer, self.mask, **settings)
        return dloss * mean.dscores, dloss * mean.dv


class _Surrogate:
    """What was read, log p(s) and the entropy side by side: all that is smooth in hard attention."""

    def __init__(self, rng):
        self.layer = HardAttention(Similarity("general", D, FF, rng=rng, dtype=np.float64))
        self.named_parameters = self.layer.named_parameters

    def forward(self, queries, memory, **settings):
        context, cache = self.layer.forward(queries, memory, **settings)
        log_prob = cache.log_prob
        entropy = np.broadcast_to(cache.entropy, log_prob.shape)
        return np.concatenate([context, log_prob[..., None], entropy[..., None]], -1), cache

    def backward(self, dy, cache):
        dentropy = dy[..., -1] if dy.ndim == 3 else dy[..., -1].sum(0)  # one entropy for all draws
        return self.layer.backward(dy[..., :-2], cache, dlog_prob=dy[..., -2], dentropy=dentropy)
