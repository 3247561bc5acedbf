"""Cases of the layers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array, array_module
from npformer.checking.cases.case import FF, B, Case, D, H, T, V, floats, given, made, make_case, pair_case
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
    LoRALinear,
    MixtureOfExperts,
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
    yield make_case("Linear", made(Linear, D, FF), x)
    yield make_case("Linear, no bias", made(Linear, D, FF, bias=False), x)
    for name, bias in {"": True, ", no bias": False}.items():
        yield make_case(f"LoRALinear{name}", made(_adapted, bias=bias), x)
    yield make_case("LayerNorm", made(LayerNorm, D), x)
    yield make_case("LayerNorm, no bias", made(LayerNorm, D, bias=False), x)
    yield make_case("RMSNorm", made(RMSNorm, D), x)
    yield make_case("Dropout", made(Dropout, 0.4), x, **dropping)
    for name, bias in {"": False, ", bias": True}.items():
        yield make_case(f"TiedProjection{name}", made(_tied_projection, bias), x)
    for activation in F.ACTIVATIONS:
        network = made(FeedForward, D, FF, activation=activation, dropout=0.2)
        yield make_case(f"FeedForward, {activation}", network, x, **dropping)
    yield make_case("FeedForward, no biases", made(FeedForward, D, FF, bias=False), x)
    for activation in F.GATED_ACTIVATIONS:
        for name, bias in {"": False, ", biases": True}.items():
            network = made(GatedFeedForward, D, FF, activation=activation, dropout=0.2, bias=bias)
            yield make_case(f"GatedFeedForward, {activation}{name}", network, x, **dropping)
    routings: dict[str, dict[str, Any]] = {
        "gated, two of four": {"dropout": 0.2},
        "plain, one of four": {"top_k": 1, "renormalize": False, "activation": "gelu", "bias": True},
    }
    for name, settings in routings.items():
        mixture = made(MixtureOfExperts, D, FF, 4, **settings)
        yield make_case(f"MixtureOfExperts, {name}", mixture, x, **dropping)
    ids = given(np.array([[4, 4, 0, 8], [2, 0, 4, 3]]))  # a token that repeats, and padding
    yield make_case("Embedding", made(Embedding, V, D, scale=2.0), ids)
    yield make_case("Embedding, zero padding", made(Embedding, V, D, zero_id=0), ids)
    for positions in ("interleaved", "halves", "jianshu", "learned", "none"):
        embedding = made(InputEmbedding, V, D, 8, positions=positions, dropout=0.2)
        yield make_case(f"InputEmbedding, {positions}", embedding, ids, **dropping)
    yield make_case("LearnedPositions", _Batched, given(T), start=2)
    heads, rotary = floats(B, H, T, D), made(RotaryPositions, 8, D)
    yield make_case("RotaryPositions", rotary, heads, start=2)
    yield make_case("RotaryPositions, starts apart", rotary, heads, start=np.array([0, 3]))
    llama = made(RotaryPositions, 8, D, base=100.0, scaling=Llama3Scaling(8.0, 1.0, 4.0, 8))
    yield make_case("RotaryPositions of Llama 3", llama, heads)
    for name, bias in {"AddNorm": True, "AddNorm, no bias": False}.items():
        yield make_case(name, made(AddNorm, D, dropout=0.2, bias=bias), x, x, **dropping)


def _tied_projection(bias: bool, *, rng: np.random.Generator) -> TiedProjection:
    return TiedProjection(Parameter(rng.standard_normal((V, D))), bias=bias, dtype=np.float64)


def _adapted(bias: bool, *, rng: np.random.Generator) -> LoRALinear:
    layer = LoRALinear(Linear(D, FF, bias=bias, rng=rng, dtype=np.float64), 2, scale=0.5, rng=rng)
    layer.b.value[...] = rng.standard_normal(layer.b.shape)  # it begins at 0, where the gradient of a is 0
    return layer


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
    inputs = (floats(B, T, D), floats(D), floats(D))
    yield pair_case("batch norm", F.batch_norm, *inputs)
    yield pair_case("batch norm, padding", F.batch_norm, *inputs, mask=TOKEN_MASK)
    nothing = np.zeros((B, T), bool)
    yield pair_case("batch norm, padding alone", F.batch_norm, *inputs, mask=nothing, eps=1.0)
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
