"""Cases of the models of one language, and of batch norm, which they do without."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.functional.batch_norm import Statistics
from npformer.gradcheck.cases.case import B, Case, D, T, floats, given, make_case, pair_case
from npformer.gradcheck.cases.models import DROPPING, NARROW, PRE, TARGET_IN, TARGET_OUT, small_config
from npformer.gradcheck.whole import LanguageModelWithLoss
from npformer.layers import BatchNorm
from npformer.transformer import MaskedWordModel, NextWordModel

WORDS = np.array([[True] * T, [True] * 2 + [False] * (T - 2)])
# words hidden behind 8, and what they were; 0 elsewhere, where nothing is asked
HIDDEN = np.array([[8, 5, 6, 3], [4, 8, 3, 0]])
ASKED = np.array([[7, 0, 6, 0], [0, 4, 0, 0]])


def batch_norm_cases() -> Iterator[Case]:
    """Batch norm by its batch's statistics and by given ones, with padding and without."""
    pair = (F.batch_norm, F.batch_norm_backward)
    inputs = (floats(B, T, D), floats(D), floats(D))
    masks: dict[str, dict[str, Any]] = {
        "": {},
        ", padding": {"mask": WORDS},
        ", padding alone": {"mask": np.zeros((B, T), bool), "eps": 1.0},
    }
    for name, settings in masks.items():
        yield pair_case(f"batch norm{name}", pair, *inputs, **settings)
    given_ones = Statistics(np.linspace(-1, 1, D), np.linspace(0.5, 2, D))
    by_given = (lambda x, gain, bias: F.batch_norm(x, gain, bias, given=given_ones), F.batch_norm_backward)
    yield pair_case("batch norm, given statistics", by_given, *inputs)
    yield make_case("BatchNorm", _batch_norm, floats(B, T, D), mask=WORDS, train=True)
    yield make_case("BatchNorm, running statistics", _batch_norm, floats(B, T, D))


def _batch_norm(rng):
    layer = BatchNorm(D, dtype=np.float64)
    layer.running_mean, layer.running_variance = rng.standard_normal(D), rng.uniform(0.5, 2, D)
    return layer


def language_model_cases() -> Iterator[Case]:
    """Both models with their loss, every option on; of hidden words the loss is over these alone."""
    everything: dict[str, Any] = {"zero_padding": True, "output_bias": True, "positions": "learned", **NARROW}
    for name, changes in {
        "every option, post-norm": {**everything, "activation": "gelu", "query_masking": "after"},
        "every option, pre-norm": {**everything, **PRE, "fused_projections": True},
        "untied": {"tied": "none"},
    }.items():
        config = small_config(**changes)
        yield _model(MaskedWordModel, name, config, HIDDEN, ASKED)
        yield _model(NextWordModel, name, config, TARGET_IN, TARGET_OUT)


def _model(kind, name, config, ids, asked):
    return make_case(
        f"{kind.__name__}, {name}",
        lambda rng: LanguageModelWithLoss(kind(config, rng=rng, dtype=np.float64)),
        given(ids),
        given(asked),
        **DROPPING,
    )
