"""Cases of the layers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.gradcheck.cases.case import FF, B, Case, D, T, V, floats
from npformer.layers import (
    Dropout,
    Embedding,
    FeedForward,
    InputEmbedding,
    LayerNorm,
    LearnedPositions,
    Linear,
    Residual,
    TiedProjection,
)
from npformer.module import Parameter


def layer_cases() -> Iterator[Case]:
    x = floats(B, T, D)
    ids = np.array([[4, 4, 0, 8], [2, 0, 4, 3]])  # a word that repeats, and padding
    f8 = {"dtype": np.float64}
    layers: dict[str, Callable[[np.random.Generator], Any]] = {
        "Linear": lambda rng: Linear(D, FF, rng=rng, **f8),
        "Linear, no bias": lambda rng: Linear(D, FF, bias=False, rng=rng, **f8),
        "LayerNorm": lambda rng: LayerNorm(D, **f8),
        "Dropout": lambda rng: Dropout(0.4),
        "TiedProjection": lambda rng: TiedProjection(Parameter(rng.standard_normal((V, D)))),
        "TiedProjection, bias": lambda rng: TiedProjection(
            Parameter(rng.standard_normal((V, D))), bias=True, **f8
        ),
    }
    for activation in F.ACTIVATIONS:
        layers[f"FeedForward, {activation}"] = lambda rng, a=activation: FeedForward(
            D, FF, activation=a, rate=0.2, rng=rng, **f8
        )
    for name, make in layers.items():
        settings = {"train": True, "rng": 5} if name.startswith(("Dropout", "Feed")) else {}
        yield Case(name, lambda rng, make=make: (make(rng), x(rng)), settings)
    yield Case("Embedding", lambda rng: (Embedding(V, D, scale=2.0, rng=rng, **f8), ids))
    yield Case("Embedding, zero padding", lambda rng: (Embedding(V, D, zero_id=0, rng=rng, **f8), ids))
    for positions in ("interleaved", "halves", "jianshu", "learned", "none"):
        yield Case(
            f"InputEmbedding, {positions}",
            lambda rng, p=positions: (InputEmbedding(V, D, 8, positions=p, rate=0.2, rng=rng, **f8), ids),
            {"train": True, "rng": 5},
        )
    yield Case(
        "LearnedPositions", lambda rng: (_Batched(LearnedPositions(8, D, rng=rng, **f8), B), T), {"start": 2}
    )
    for norm in ("post", "pre"):
        yield Case(f"Residual, {norm}-norm", lambda rng, n=norm: (_Framed(n, rng), x(rng)))


class _Batched:
    """Positions as the model uses them: the same for every sentence of a batch."""

    def __init__(self, layer, batch):
        self.layer, self.batch = layer, batch
        self.named_parameters = layer.named_parameters

    def forward(self, length, start=0):
        y, cache = self.layer.forward(length, start)
        return np.stack([y] * self.batch), cache

    def backward(self, dy, cache):
        return self.layer.backward(dy, cache)


class _Framed:
    """A residual round a linear map."""

    def __init__(self, norm, rng):
        self.residual = Residual(D, norm=norm, rate=0.2, dtype=np.float64)
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
