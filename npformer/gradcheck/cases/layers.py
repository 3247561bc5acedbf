"""Cases of the layers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.gradcheck.cases.case import FF, B, Case, D, T, V, floats, given, make_case
from npformer.layers import (
    Dropout,
    Embedding,
    FeedForward,
    InputEmbedding,
    LayerNorm,
    LearnedPositions,
    Linear,
    Residual,
    SequenceResidual,
    TiedProjection,
)
from npformer.module import Parameter


def layer_cases() -> Iterator[Case]:
    """Every layer, with every option that changes its mathematics."""
    x = floats(B, T, D)
    dropping = {"train": True, "rng": 5}
    f8 = {"dtype": np.float64}
    yield make_case("Linear", lambda rng: Linear(D, FF, rng=rng, **f8), x)
    yield make_case("Linear, no bias", lambda rng: Linear(D, FF, bias=False, rng=rng, **f8), x)
    yield make_case("LayerNorm", lambda rng: LayerNorm(D, **f8), x)
    yield make_case("Dropout", lambda rng: Dropout(0.4), x, **dropping)
    for name, bias in {"TiedProjection": False, "TiedProjection, bias": True}.items():
        yield make_case(name, _tied_projection(bias), x)
    for activation in F.ACTIVATIONS:
        yield make_case(f"FeedForward, {activation}", _feed_forward(activation), x, **dropping)
    ids = given(np.array([[4, 4, 0, 8], [2, 0, 4, 3]]))  # a word that repeats, and padding
    yield make_case("Embedding", lambda rng: Embedding(V, D, scale=2.0, rng=rng, **f8), ids)
    yield make_case("Embedding, zero padding", lambda rng: Embedding(V, D, zero_id=0, rng=rng, **f8), ids)
    for positions in ("interleaved", "halves", "jianshu", "learned", "none"):
        yield make_case(f"InputEmbedding, {positions}", _input(positions), ids, **dropping)
    yield make_case("LearnedPositions", _Batched, given(T), start=2)
    for norm in ("post", "pre"):
        yield make_case(f"Residual, {norm}-norm", _framed(norm), x)
    for sequence in ("n-da", "-dan", "n-dan", "n-nda", "-a"):
        yield make_case(f"SequenceResidual, {sequence}", _framed(sequence), x)


def _tied_projection(bias):
    return lambda rng: TiedProjection(Parameter(rng.standard_normal((V, D))), bias=bias, dtype=np.float64)


def _feed_forward(activation):
    return lambda rng: FeedForward(D, FF, activation=activation, rate=0.2, rng=rng, dtype=np.float64)


def _input(positions):
    return lambda rng: InputEmbedding(V, D, 8, positions=positions, rate=0.2, rng=rng, dtype=np.float64)


def _framed(norm):
    return lambda rng: _Framed(norm, rng)


class _Batched:
    """Learned positions as the model uses them: the same for every sentence of a batch."""

    def __init__(self, rng):
        self.layer = LearnedPositions(8, D, rng=rng, dtype=np.float64)
        self.named_parameters = self.layer.named_parameters

    def forward(self, length, start=0):
        y, cache = self.layer.forward(length, start)
        return np.stack([y] * B), cache

    def backward(self, dy, cache):
        return self.layer.backward(dy, cache)


class _Framed:
    """A residual round a linear map."""

    def __init__(self, norm, rng):
        made: Any = {"rate": 0.2, "dtype": np.float64}
        named = norm in ("post", "pre")
        self.residual = (
            Residual(D, norm=norm, **made) if named else SequenceResidual(D, sequence=norm, **made)
        )
        self.linear = Linear(D, D, rng=rng, dtype=np.float64)

    def named_parameters(self):
        return [*self.residual.named_parameters(), *self.linear.named_parameters()]

    def forward(self, x):
        h, entered = self.residual.enter(x)
        h, linear = self.linear.forward(h)
        y, cache = self.residual.join(x, h, entered, train=True, rng=np.random.default_rng(5))
        return y, (cache, linear)

    def backward(self, dy, cache):
        joined, linear = cache
        dx, dh = self.residual.join_backward(dy, joined)
        return self.residual.enter_backward(dx, self.linear.backward(dh, linear), joined)
