"""Cases of the recurrent networks, of their attentions, and of the similarities as layers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.checking.cases.case import (
    FF,
    B,
    Case,
    D,
    H,
    Maker,
    S,
    T,
    floats,
    given,
    made,
    make_case,
    pair_case,
)
from npformer.nn.attention import (
    AttentionalState,
    GlobalAttention,
    LocalMonotonic,
    LocalPredictive,
    Similarity,
    SimilarityAttention,
)
from npformer.nn.attention.similarity import SIMILARITIES
from npformer.nn.recurrent import KINDS, Bidirectional, Recurrent

TOKEN_MASK = np.array([[True] * S, [True] * (S - 2) + [False] * 2])  # (B, S) the second sentence is padded


def recurrent_cases() -> Iterator[Case]:
    """Yield the cells, and LSTM and GRU in both directions, with padding and with an initial state."""
    yield pair_case("LSTM cell", F.lstm_cell, floats(B, 4 * D), floats(B, D))
    yield pair_case("GRU cell", F.gru_cell, floats(B, 3 * D), floats(B, 3 * D), floats(B, D))
    real = given(np.array([True, False]))
    yield pair_case("masked update", F.masked_update, floats(B, D), floats(B, D), real)
    x = floats(B, S, D)
    for kind, (_, states) in KINDS.items():
        reader = made(Recurrent, D, FF, kind=kind)
        backwards = made(Recurrent, D, FF, kind=kind, backwards=True)
        yield make_case(f"Recurrent, {kind}", reader, x, mask=TOKEN_MASK)
        yield make_case(f"Recurrent, {kind}, backwards", backwards, x, mask=TOKEN_MASK)
        first = floats(B, states * FF)
        yield make_case(f"Recurrent, {kind}, first state", reader, x, first, mask=TOKEN_MASK)
        yield make_case(f"Bidirectional, {kind}", made(Bidirectional, D, FF, kind=kind), x, mask=TOKEN_MASK)


def attend_cases() -> Iterator[Case]:
    """Yield attention by given scores, the predicted position, and the Gaussian window."""
    scores, v = floats(B, T, S), floats(B, S, D)
    mask = TOKEN_MASK[:, None] & (np.arange(T)[:, None] != 1)  # (B, T, S)
    yield pair_case("attend", F.attend, scores, v)
    yield pair_case("attend, masks and dropout", F.attend, scores, v, mask=mask, p=0.3, rng=5)
    inputs = (floats(B, T, D), floats(D, FF), floats(FF), given(TOKEN_MASK.sum(-1, keepdims=True)))
    yield pair_case("predicted position", F.predict_position, *inputs)
    yield pair_case("Gaussian window", F.gaussian_window, scores, floats(B, T), sigma=1.5)


def similarity_cases() -> Iterator[Case]:
    """Yield every similarity as a layer, and in several heads."""
    x, memory = floats(B, T, D), floats(B, S, D)
    masks: dict[str, Any] = {"mask": TOKEN_MASK[:, None, None], "train": True, "rng": 5}
    for kind in SIMILARITIES:
        yield make_case(f"Similarity, {kind}", _similarity(kind), x, _memory(kind))
        yield make_case(f"Similarity, {kind}, scaled", _similarity(kind, scaled=True), x, _memory(kind))
        heads = made(SimilarityAttention, D, H, similarity=kind, dropout=0.3)
        yield make_case(f"SimilarityAttention self, {kind}", heads, memory, **masks)
        yield make_case(f"SimilarityAttention cross, {kind}", heads, x, memory, **masks)
    wide = made(SimilarityAttention, D, H, similarity="perceptron", dropout=0.3, width=5)
    yield make_case("SimilarityAttention, a perceptron of width 5", wide, x, memory, **masks)


def luong_cases() -> Iterator[Case]:
    """Yield global and local attention with padding, and the attentional state."""
    queries, memory = floats(B, T, D), floats(B, S, D)
    for kind in SIMILARITIES:
        inputs = (queries, _memory(kind))
        yield make_case(f"GlobalAttention, {kind}", _luong(GlobalAttention, kind), *inputs, mask=TOKEN_MASK)
        near = _luong(LocalPredictive, kind, reach=2, dtype=np.float64)
        yield make_case(f"LocalPredictive, {kind}", near, *inputs, mask=TOKEN_MASK)
    near = _luong(LocalPredictive, "dot", reach=1, dtype=np.float64)
    yield make_case("LocalPredictive, no padding", near, queries, memory)
    near = _luong(LocalMonotonic, "dot", reach=1)
    yield make_case("LocalMonotonic, no padding", near, queries, memory)
    yield make_case("LocalMonotonic", near, queries, memory, mask=TOKEN_MASK)
    yield make_case("LocalMonotonic, start 2", near, queries, memory, mask=TOKEN_MASK, start=2)
    yield make_case("AttentionalState", made(AttentionalState, D, FF, 5), queries, floats(B, T, FF))


def _key_width(kind: str) -> int:
    """Return the width of the memory, which differs from that of the queries if the similarity allows it."""
    return D if kind == "dot" else FF


def _memory(kind: str) -> Maker:
    return floats(B, S, _key_width(kind))


def _similarity(kind: str, *, scaled: bool = False) -> Maker:
    width = 4 if kind == "perceptron" else None
    return made(Similarity, kind, D, _key_width(kind), width=width, scaled=scaled)


def _luong(layer: Any, kind: str, **settings: Any) -> Maker:
    return lambda rng: layer(_similarity(kind)(rng), **settings)
