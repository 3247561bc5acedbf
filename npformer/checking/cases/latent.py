"""Cases of latent attention and of the if-then models."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.checking.cases.case import FF, B, Case, D, S, V, floats, given, made, make_case, pair_case
from npformer.checking.cases.recurrent import TOKEN_MASK
from npformer.functional.latent import MEASURES, ORIENTATIONS
from npformer.models.if_then import BagOfWords, ProgramLoss, RecipeReader
from npformer.nn.attention import LatentAttention

DESCRIPTIONS = np.array([[4, 5, 6, 5, 8], [7, 4, 6, 0, 0]])  # a token that repeats, and padding


def latent_cases() -> Iterator[Case]:
    """Yield both orientations and measures, with padding: the pairs, the layer, and whole models."""
    for measure in MEASURES:
        yield pair_case(f"unit weights, {measure}", F.unit_weights, _weights, measure=measure)
    scores = (floats(B, S), floats(B, S, S), floats(B, S, D))
    e, values, mask = floats(B, S, D), floats(B, S, FF), TOKEN_MASK
    for orientation, measure in product(ORIENTATIONS, MEASURES):
        settings: dict[str, Any] = {"orientation": orientation, "measure": measure}
        name = f"{orientation}, {measure}"
        yield pair_case(f"latent attend, {name}", F.latent_attend, *scores, **settings)
        yield pair_case(f"latent attend, padding, {name}", F.latent_attend, *scores, mask=mask, **settings)
        attention = made(LatentAttention, D, S + 2, **settings)
        yield make_case(f"LatentAttention, {name}", attention, e, mask=mask)
        yield make_case(f"LatentAttention, values apart, {name}", attention, e, values, mask=mask)
        yield _model_case(f"RecipeReader, {name}", RecipeReader, d_hidden=3, **settings)
    yield _model_case("RecipeReader, gru", RecipeReader, d_hidden=3, cell="gru")
    yield _model_case("BagOfWords", BagOfWords)


def _weights(rng: np.random.Generator) -> Array:
    """Draw weights that are not negative."""
    return rng.random((B, S))


def _model_case(name: str, kind: Any, **settings: Any) -> Case:
    model = made(kind, V, 3, 4, d_model=D, **settings)
    classes = (given(np.array([2, 0])), given(np.array([1, 3])))
    return make_case(name, lambda rng: ProgramLoss(model(rng)), given(DESCRIPTIONS), *classes)
