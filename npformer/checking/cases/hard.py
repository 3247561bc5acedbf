"""Cases of hard attention. The draws are fixed, so that the functions are smooth."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array, array_module, like
from npformer.checking.cases.case import FF, B, Case, D, S, T, floats, given, made, make_case, pair_case
from npformer.checking.cases.recurrent import TOKEN_MASK
from npformer.functional.hard import HardAttendCache, straight_through_backward
from npformer.models.place_reader import PLACES, SYMBOLS, Reader
from npformer.nn.attention import HardAttention, Similarity
from npformer.nn.attention.hard import HardAttentionCache, estimate, expected_loss


def hard_cases() -> Iterator[Case]:
    """Yield hard_attend, the log-probability of a draw, the entropy, and the layer with all three."""
    scores, v, mask = floats(B, T, S), floats(B, S, D), TOKEN_MASK[:, None]
    yield pair_case("hard attend", F.hard_attend, scores, v, rng=5)
    yield pair_case("hard attend, most probable, mask", F.hard_attend, scores, v, mask=mask)
    yield pair_case("hard attend, 3 draws, mask", F.hard_attend, scores, v, mask=mask, rng=5, draws=3)
    evenly = np.broadcast_to(mask / mask.sum(-1, keepdims=True), (B, T, S))
    for name, draws in {"": None, ", 3 draws": 3}.items():
        inputs = (scores, given(F.one_hot_sample(evenly, _rng(), draws)))
        yield pair_case(f"log-probability of a choice{name}", F.log_probability, *inputs)
        yield pair_case(f"log-probability of a choice, mask{name}", F.log_probability, *inputs, mask=mask)
    yield pair_case("entropy", F.entropy, scores)
    yield pair_case("entropy, mask", F.entropy, scores, mask=mask)
    yield pair_case("straight through, as soft attention", _straight_through(mask), scores)
    yield make_case("score function, all draws", _Expected, floats(1, 2, 3), floats(1, 3, 3))
    settings: dict[str, Any] = {"mask": TOKEN_MASK, "train": True, "rng": 5}
    for name, draws in {"": None, ", 3 draws": 3}.items():
        inputs = (floats(B, T, D), floats(B, S, FF))
        yield make_case(f"HardAttention{name}", _Surrogate, *inputs, draws=draws, **settings)
    yield make_case("HardAttention, straight through", _StraightThrough, floats(B, T, D), **settings)
    places = floats(B, 1, PLACES), floats(B, PLACES, PLACES + SYMBOLS)
    yield make_case("Reader, soft", made(Reader, "soft"), *places)
    yield make_case("Reader, hard, 3 draws", made(Reader, "hard"), *places, train=True, rng=5, draws=3)


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _straight_through(mask: Array) -> tuple[Any, Any]:
    """Return a pair whose gradient of the scores is that of soft attention, for any draw."""
    v = _rng().standard_normal((B, S, D))
    return lambda scores: _soft(scores, v, mask), lambda dz, cache: straight_through_backward(dz, cache)[0]


def _soft(scores: Array, v: Array, mask: Array) -> tuple[Array, HardAttendCache]:
    z, cache = F.attend(scores, v, mask)
    return z, HardAttendCache(v, F.one_hot_sample(cache.weights, _rng()), cache.weights)


class SmallAnswer:
    """The answer log p(y | s) = log softmax(tanh(Σ_t z_t weight_t))_1, which depends on all draws together.

    Shapes: z (N, B, T, L), weight (T, L, C) -> (N, B).
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.weight = 2 * rng.standard_normal((2, 3, 4))  # (T, L, C)

    def forward(self, z: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return (log_likelihood, cache)."""
        hidden = np.tanh(np.einsum("nbtl,tlc->nbc", z, self.weight))
        log_probs, _ = F.log_softmax(hidden)
        return log_probs[..., 1], (hidden, log_probs)

    def backward(self, dlog_likelihood: Array, cache: tuple[Array, Array]) -> Array:
        """Return dz."""
        hidden, log_probs = cache
        dlog_probs = np.zeros_like(log_probs)
        dlog_probs[..., 1] = dlog_likelihood
        dsum = F.log_softmax_backward(dlog_probs, log_probs) * (1 - hidden * hidden)
        return np.einsum("nbc,tlc->nbtl", dsum, self.weight)


class _Expected:
    """The loss over all draws. Its gradient is the mean of the gradients of the draws."""

    def __init__(self, rng: np.random.Generator) -> None:
        answer = SmallAnswer(rng)
        self.answer = answer.forward, answer.backward
        self.mask = np.array([[[True] * 3, [True, False, True]]])  # (1, 2, 3)

    def forward(self, scores: Array, v: Array) -> tuple[Any, tuple[Array, Array]]:
        loss = expected_loss(scores, v, self.answer, self.mask, entropy_weight=0.3)
        return loss, (scores, v)

    def backward(self, dloss: float, cache: tuple[Array, Array]) -> tuple[Array, Array]:
        settings: dict[str, Any] = {"baseline": -0.7, "entropy_weight": 0.3}
        scores, v = cache
        mean = estimate(scores, v, self.answer, self.mask, **settings)
        return dloss * mean.dscores, dloss * mean.dv


class _StraightThrough:
    """Soft attention to a fixed memory, whose gradient of the queries the straight-through estimate is."""

    def __init__(self, rng: np.random.Generator) -> None:
        similarity = Similarity("general", D, FF, rng=rng, dtype=np.float64)
        self.layer = HardAttention(similarity, straight_through=True)
        self.memory = rng.standard_normal((B, S, FF))
        self.memory.flags.writeable = False
        self.named_parameters = self.layer.named_parameters

    def forward(self, queries: Array, mask: Array, **settings: Any) -> tuple[Array, Any]:
        memory = like(self.memory, queries).astype(queries.real.dtype)
        _, cache = self.layer.forward(queries, memory, mask, **settings)
        scores, _ = self.layer.similarity.forward(queries, memory)
        return F.attend(scores, memory, mask[:, None])[0], cache

    def backward(self, dy: Array, cache: HardAttentionCache) -> Array:
        return self.layer.backward(dy, cache)[0]


class _Surrogate:
    """The output, log p(s) and the entropy, concatenated: the smooth parts of hard attention."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.layer = HardAttention(Similarity("general", D, FF, rng=rng, dtype=np.float64))
        self.named_parameters = self.layer.named_parameters

    def forward(self, queries: Array, memory: Array, **settings: Any) -> tuple[Array, Any]:
        context, cache = self.layer.forward(queries, memory, **settings)
        log_prob = cache.log_prob
        xp = array_module(log_prob)
        entropy = xp.broadcast_to(cache.entropy, log_prob.shape)
        return xp.concatenate([context, log_prob[..., None], entropy[..., None]], -1), cache

    def backward(self, dy: Array, cache: HardAttentionCache) -> Any:
        dentropy = dy[..., -1] if dy.ndim == 3 else dy[..., -1].sum(0)  # all draws have the same entropy
        return self.layer.backward(dy[..., :-2], cache, dlog_prob=dy[..., -2], dentropy=dentropy)
