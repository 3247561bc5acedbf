"""Cases of latent attention, and of the models that read recipes."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from npformer import functional as F
from npformer.attention import LatentAttention
from npformer.functional.latent import MEASURES, ORIENTATIONS
from npformer.gradcheck.cases.case import FF, B, Case, D, S, V, floats, given, make_case, pair_case
from npformer.gradcheck.cases.recurrent import WORDS
from npformer.ifthen import BagOfWords, ProgramLoss, RecipeReader

DESCRIPTIONS = np.array([[4, 5, 6, 5, 8], [7, 4, 6, 0, 0]])  # a word that repeats, and padding


def latent_cases() -> Iterator[Case]:
    """Both orientations and measures, with padding: the pairs, the layer, whole readers with their loss."""
    for measure in MEASURES:
        unit = (F.unit_weights, F.unit_weights_backward)
        yield pair_case(f"unit weights, {measure}", unit, _weights, measure=measure)
    scores = (floats(B, S), floats(B, S, S), floats(B, S, D))
    e, values = floats(B, S, D), floats(B, S, FF)
    for orientation, measure in product(ORIENTATIONS, MEASURES):
        settings = {"orientation": orientation, "measure": measure}
        name = f"{orientation}, {measure}"
        pair = (F.latent_look_up, F.latent_look_up_backward)
        yield pair_case(f"latent look-up, {name}", pair, *scores, **settings)
        yield pair_case(f"latent look-up, padding, {name}", pair, *scores, mask=WORDS, **settings)
        attention = _attention(settings)
        yield make_case(f"LatentAttention, {name}", attention, e, mask=WORDS)
        yield make_case(f"LatentAttention, values apart, {name}", attention, e, values, mask=WORDS)
        yield _model_case(f"RecipeReader, {name}", RecipeReader, d_hidden=3, **settings)
    yield _model_case("RecipeReader, gru", RecipeReader, d_hidden=3, cell="gru")
    yield _model_case("BagOfWords", BagOfWords)


def _weights(rng):
    """Weights that are not negative."""
    return rng.random((B, S))


def _attention(settings):
    return lambda rng: LatentAttention(D, S + 2, rng=rng, dtype=np.float64, **settings)


def _model_case(name, model, **settings):
    classes = (given(np.array([2, 0])), given(np.array([1, 3])))
    return make_case(
        name,
        lambda rng: ProgramLoss(model(V, 3, 4, d_model=D, rng=rng, dtype=np.float64, **settings)),
        given(DESCRIPTIONS),
        *classes,
    )
