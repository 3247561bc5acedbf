"""Cases of the similarities as layers, and of the attentions of recurrent networks."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.checking.cases.case import FF, B, Case, D, H, Maker, S, T, floats, given, make_case, pair_case
from npformer.checking.cases.recurrent import TOKEN_MASK
from npformer.nn.attention import (
    AttentionalState,
    GlobalAttention,
    LocalMonotonic,
    LocalPredictive,
    Similarity,
    SimilarityAttention,
)
from npformer.nn.attention.similarity import SIMILARITIES

F8: dict[str, Any] = {"dtype": np.float64}


def attend_cases() -> Iterator[Case]:
    """Yield attention by given scores, the predicted position, and the Gaussian window."""
    attend = (F.attend, F.attend_backward)
    scores, v = floats(B, T, S), floats(B, S, D)
    mask = TOKEN_MASK[:, None] & (np.arange(T)[:, None] != 1)  # (B, T, S)
    yield pair_case("attend", attend, scores, v)
    yield pair_case("attend, masks and dropout", attend, scores, v, mask=mask, p=0.3, rng=5)
    predict = (F.predict_position, F.predict_position_backward)
    lengths = given(TOKEN_MASK.sum(-1, keepdims=True))
    yield pair_case("predicted position", predict, floats(B, T, D), floats(D, FF), floats(FF), lengths)
    window = (F.gaussian_window, F.gaussian_window_backward)
    yield pair_case("Gaussian window", window, scores, floats(B, T), sigma=1.5)


def similarity_cases() -> Iterator[Case]:
    """Yield every similarity as a layer, and in several heads."""
    x, memory = floats(B, T, D), floats(B, S, D)
    masks: dict[str, Any] = {"mask": TOKEN_MASK[:, None, None], "train": True, "rng": 5}
    for kind in SIMILARITIES:
        for name, scaled in {"": False, ", scaled": True}.items():
            make = _similarity(kind, scaled=scaled)
            yield make_case(f"Similarity, {kind}{name}", make, x, _memory(kind))
        yield make_case(f"SimilarityAttention self, {kind}", _heads(kind), memory, **masks)
        yield make_case(f"SimilarityAttention cross, {kind}", _heads(kind), x, memory, **masks)
    wide = _heads("perceptron", width=5)
    yield make_case("SimilarityAttention, a perceptron of width 5", wide, x, memory, **masks)


def luong_cases() -> Iterator[Case]:
    """Yield global and local attention with padding, and the attentional state."""
    queries, memory = floats(B, T, D), floats(B, S, D)
    for kind in SIMILARITIES:
        inputs = (queries, _memory(kind))
        yield make_case(f"GlobalAttention, {kind}", _luong(GlobalAttention, kind), *inputs, mask=TOKEN_MASK)
        near = _luong(LocalPredictive, kind, reach=2, **F8)
        yield make_case(f"LocalPredictive, {kind}", near, *inputs, mask=TOKEN_MASK)
    near = _luong(LocalPredictive, "dot", reach=1, **F8)
    yield make_case("LocalPredictive, no padding", near, queries, memory)
    near = _luong(LocalMonotonic, "dot", reach=1)
    yield make_case("LocalMonotonic, no padding", near, queries, memory)
    yield make_case("LocalMonotonic", near, queries, memory, mask=TOKEN_MASK)
    yield make_case("LocalMonotonic, start 2", near, queries, memory, mask=TOKEN_MASK, start=2)
    state = floats(B, T, FF)
    yield make_case("AttentionalState", lambda rng: AttentionalState(D, FF, 5, rng=rng, **F8), queries, state)


def _key_width(kind: str) -> int:
    """Return the width of the memory, which differs from that of the queries if the similarity allows it."""
    return D if kind == "dot" else FF


def _memory(kind: str) -> Maker:
    return floats(B, S, _key_width(kind))


def _similarity(kind: str, *, scaled: bool = False) -> Maker:
    width = 4 if kind == "perceptron" else None
    return lambda rng: Similarity(kind, D, _key_width(kind), width=width, scaled=scaled, rng=rng, **F8)


def _heads(kind: str, **settings: Any) -> Maker:
    return lambda rng: SimilarityAttention(D, H, similarity=kind, dropout=0.3, rng=rng, **settings, **F8)


def _luong(make: Any, kind: str, **settings: Any) -> Maker:
    return lambda rng: make(_similarity(kind)(rng), **settings)
