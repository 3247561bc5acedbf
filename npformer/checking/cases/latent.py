"""Cases of latent attention and of the if-then models."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.checking.cases.case import FF, B, Case, D, Maker, S, V, floats, given, make_case, pair_case
from npformer.checking.cases.recurrent import TOKEN_MASK
from npformer.functional.latent import MEASURES, ORIENTATIONS
from npformer.models.if_then import BagOfWords, ProgramLoss, RecipeReader
from npformer.nn.attention import LatentAttention

DESCRIPTIONS = np.array([[4, 5, 6, 5, 8], [7, 4, 6, 0, 0]])  # a token that repeats, and padding


def latent_cases() -> Iterator[Case]:
    """Yield both orientations and measures, with padding: the pairs, the layer, and whole models."""
    for measure in MEASURES:
        unit = (F.unit_weights, F.unit_weights_backward)
        yield pair_case(f"unit weights, {measure}", unit, _weights, measure=measure)
    scores = (floats(B, S), floats(B, S, S), floats(B, S, D))
    e, values = floats(B, S, D), floats(B, S, FF)
    for orientation, measure in product(ORIENTATIONS, MEASURES):
        settings: dict[str, Any] = {"orientation": orientation, "measure": measure}
        name = f"{orientation}, {measure}"
        pair = (F.latent_attend, F.latent_attend_backward)
        yield pair_case(f"latent attend, {name}", pair, *scores, **settings)
        yield pair_case(f"latent attend, padding, {name}", pair, *scores, mask=TOKEN_MASK, **settings)
        attention = _attention(settings)
        yield make_case(f"LatentAttention, {name}", attention, e, mask=TOKEN_MASK)
        yield make_case(f"LatentAttention, values apart, {name}", attention, e, values, mask=TOKEN_MASK)
        yield _model_case(f"RecipeReader, {name}", RecipeReader, d_hidden=3, **settings)
    yield _model_case("RecipeReader, gru", RecipeReader, d_hidden=3, cell="gru")
    yield _model_case("BagOfWords", BagOfWords)


def _weights(rng: np.random.Generator) -> Array:
    """Draw weights that are not negative."""
    return rng.random((B, S))


def _attention(settings: dict[str, Any]) -> Maker:
    return lambda rng: LatentAttention(D, S + 2, rng=rng, dtype=np.float64, **settings)


def _model_case(name: str, model: Any, **settings: Any) -> Case:
    classes = (given(np.array([2, 0])), given(np.array([1, 3])))
    return make_case(
        name,
        lambda rng: ProgramLoss(model(V, 3, 4, d_model=D, rng=rng, dtype=np.float64, **settings)),
        given(DESCRIPTIONS),
        *classes,
    )
