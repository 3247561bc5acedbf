"""Cases of the layers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array, array_module
from npformer.checking.cases.case import FF, B, Case, D, H, Maker, T, V, floats, given, make_case, pair_case
from npformer.functional.batch_norm import Statistics
from npformer.functional.rotary import Llama3Scaling
from npformer.nn import (
    AddNorm,
    BatchNorm,
    Dropout,
    Embedding,
    FeedForward,
    GatedFeedForward,
    InputEmbedding,
    LayerNorm,
    LearnedPositions,
    Linear,
    RMSNorm,
    RotaryPositions,
    TiedProjection,
)
from npformer.nn.module import Parameter

TOKEN_MASK = np.array([[True] * T, [True] * 2 + [False] * (T - 2)])


def layer_cases() -> Iterator[Case]:
    """Yield every layer, with every option that changes its formula."""
    x = floats(B, T, D)
    dropping: dict[str, Any] = {"train": True, "rng": 5}
    f8: dict[str, Any] = {"dtype": np.float64}
    yield make_case("Linear", lambda rng: Linear(D, FF, rng=rng, **f8), x)
    yield make_case("Linear, no bias", lambda rng: Linear(D, FF, bias=False, rng=rng, **f8), x)
    yield make_case("LayerNorm", lambda rng: LayerNorm(D, **f8), x)
    yield make_case("LayerNorm, no bias", lambda rng: LayerNorm(D, bias=False, **f8), x)
    yield make_case("RMSNorm", lambda rng: RMSNorm(D, **f8), x)
    yield make_case("Dropout", lambda rng: Dropout(0.4), x, **dropping)
    for name, bias in {"TiedProjection": False, "TiedProjection, bias": True}.items():
        yield make_case(name, _tied_projection(bias), x)
    for activation in F.ACTIVATIONS:
        yield make_case(f"FeedForward, {activation}", _feed_forward(activation), x, **dropping)
    yield make_case("FeedForward, no biases", lambda rng: FeedForward(D, FF, bias=False, rng=rng, **f8), x)
    for activation in F.GATED_ACTIVATIONS:
        for name, bias in {"": False, ", biases": True}.items():
            yield make_case(f"GatedFeedForward, {activation}{name}", _gated(activation, bias), x, **dropping)
    ids = given(np.array([[4, 4, 0, 8], [2, 0, 4, 3]]))  # a token that repeats, and padding
    yield make_case("Embedding", lambda rng: Embedding(V, D, scale=2.0, rng=rng, **f8), ids)
    yield make_case("Embedding, zero padding", lambda rng: Embedding(V, D, zero_id=0, rng=rng, **f8), ids)
    for positions in ("interleaved", "halves", "jianshu", "learned", "none"):
        yield make_case(f"InputEmbedding, {positions}", _input(positions), ids, **dropping)
    yield make_case("LearnedPositions", _Batched, given(T), start=2)
    starts: dict[str, Any] = {"": 2, ", starts apart": np.array([0, 3])}
    for name, start in starts.items():
        rotated = floats(B, H, T, D)
        yield make_case(
            f"RotaryPositions{name}", lambda rng: RotaryPositions(8, D, **f8), rotated, start=start
        )
    llama: dict[str, Any] = {"base": 100.0, "scaling": Llama3Scaling(8.0, 1.0, 4.0, 8)}
    yield make_case(
        "RotaryPositions of Llama 3", lambda _: RotaryPositions(8, D, **llama, **f8), floats(B, H, T, D)
    )
    for name, bias in {"AddNorm": True, "AddNorm, no bias": False}.items():
        yield make_case(name, _add_norm(bias), x, floats(B, T, D), **dropping)


def _tied_projection(bias: bool) -> Maker:
    return lambda rng: TiedProjection(Parameter(rng.standard_normal((V, D))), bias=bias, dtype=np.float64)


def _feed_forward(activation: str) -> Maker:
    return lambda rng: FeedForward(D, FF, activation=activation, dropout=0.2, rng=rng, dtype=np.float64)


def _gated(activation: str, bias: bool) -> Maker:
    settings: dict[str, Any] = {"activation": activation, "dropout": 0.2, "bias": bias, "dtype": np.float64}
    return lambda rng: GatedFeedForward(D, FF, rng=rng, **settings)


def _input(positions: str) -> Maker:
    return lambda rng: InputEmbedding(V, D, 8, positions=positions, dropout=0.2, rng=rng, dtype=np.float64)


def _add_norm(bias: bool) -> Maker:
    return lambda rng: AddNorm(D, dropout=0.2, bias=bias, dtype=np.float64)


class _Batched:
    """Learned positions as a model uses them: the same for every sentence of a batch."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.layer = LearnedPositions(8, D, rng=rng, dtype=np.float64)
        self.named_parameters = self.layer.named_parameters

    def forward(self, length: int, start: int = 0) -> tuple[Array, Any]:
        y, cache = self.layer.forward(length, start)
        return array_module(y).stack([y] * B), cache

    def backward(self, dy: Array, cache: Any) -> Any:
        return self.layer.backward(dy, cache)


def batch_norm_cases() -> Iterator[Case]:
    """Yield batch norm with the statistics of the batch and with given ones, with and without padding."""
    pair = (F.batch_norm, F.batch_norm_backward)
    inputs = (floats(B, T, D), floats(D), floats(D))
    masks: dict[str, dict[str, Any]] = {
        "": {},
        ", padding": {"mask": TOKEN_MASK},
        ", padding alone": {"mask": np.zeros((B, T), bool), "eps": 1.0},
    }
    for name, settings in masks.items():
        yield pair_case(f"batch norm{name}", pair, *inputs, **settings)
    given_ones = Statistics(np.linspace(-1, 1, D), np.linspace(0.5, 2, D))
    by_given = (
        lambda x, gain, bias: F.batch_norm(x, gain, bias, statistics=given_ones),
        F.batch_norm_backward,
    )
    yield pair_case("batch norm, given statistics", by_given, *inputs)
    yield make_case("BatchNorm", _batch_norm, floats(B, T, D), mask=TOKEN_MASK, train=True)
    yield make_case("BatchNorm, running statistics", _batch_norm, floats(B, T, D))


def _batch_norm(rng: np.random.Generator) -> BatchNorm:
    layer = BatchNorm(D, dtype=np.float64)
    layer.running_mean, layer.running_variance = rng.standard_normal(D), rng.uniform(0.5, 2, D)
    return layer
