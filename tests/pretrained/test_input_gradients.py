"""The gradients that reach the vectors of the input tokens, against differences, for every kind of model."""

import numpy as np
import pytest
from tiny_runs import wide

from npformer import UserError
from npformer.functional import log_softmax
from npformer.models.bert import BertConfig
from npformer.models.gpt import GPTConfig
from npformer.models.recurrent import RecurrentConfig
from npformer.models.registry import build
from npformer.models.transformer import TransformerConfig
from npformer.models.universal import UniversalConfig
from npformer.pretrained.input_gradients import (
    SCORES,
    ScoredOutput,
    input_vectors,
    scores_and_gradients,
)

V = 11
LAYERS = {"d_model": 8, "n_layers": 2, "n_heads": 2}
PAIR = LAYERS | {"source_vocab": V, "target_vocab": V, "d_ff": 12, "max_length": 9}
ROTARY = {"norm": "rms", "positions": "rotary", "activation": "swiglu"}
CONFIGS = {
    "gpt-2": GPTConfig(vocab_size=V, context=9, **LAYERS),
    "llama": GPTConfig(
        vocab_size=V, context=9, n_kv_heads=1, bias=False, tied=False, window=3, **ROTARY, **LAYERS
    ),
    "bert": BertConfig(vocab_size=V, max_length=9, **LAYERS),
    "transformer": TransformerConfig(**PAIR),
    "transformer, one table": TransformerConfig(
        tied="all", norm="pre", final_norm=True, zero_padding=True, **PAIR
    ),
    "universal": UniversalConfig(**PAIR),
    "recurrent": RecurrentConfig(source_vocab=V, target_vocab=V, d_model=8, d_hidden=8, max_length=9),
}
every_model = pytest.mark.parametrize("name", CONFIGS)


def model_and_ids(name):
    """Return a model in float64 and the ids of its inputs, with padding at the end of a source sentence."""
    rng = np.random.default_rng(0)
    model = wide(build(CONFIGS[name], rng=rng, dtype=np.float64), rng)
    if isinstance(CONFIGS[name], (GPTConfig, BertConfig)):
        return model, [np.array([[4, 7, 4, 9, 5, 10]])]
    return model, [np.array([[4, 7, 4, 9, 3, 0]]), np.array([[2, 5, 6, 5]])]


@every_model
@pytest.mark.parametrize("score", SCORES)
def test_the_gradients_are_those_of_differences(name, score):
    model, ids = model_and_ids(name)
    output, vectors = ScoredOutput(2, 6, score), input_vectors(model, ids)
    rng, step = np.random.default_rng(1), 1e-5
    _, gradients = scores_and_gradients(model, ids, vectors, output)
    for number, gradient in enumerate(gradients):
        direction = rng.standard_normal(vectors[number].shape)
        ends = []
        for sign in (1, -1):
            moved = [x + sign * step * direction if n == number else x for n, x in enumerate(vectors)]
            ends.append(scores_and_gradients(model, ids, moved, output)[0][0])
        # central differences are exact to step² f''' / 6, and to rounding errors of 1e-16 / step
        assert (gradient * direction).sum() == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-9
        )
        assert abs(gradient).max() > 1e-4


@every_model
def test_several_variants_are_computed_as_if_each_were_alone(name):
    model, ids = model_and_ids(name)
    vectors = [np.concatenate([x, x / 2, x / 3]) for x in input_vectors(model, ids)]
    values, gradients = scores_and_gradients(model, ids, vectors, ScoredOutput(2, 6))
    for row in range(3):
        alone = [x[row : row + 1] for x in vectors]
        (value,), own = scores_and_gradients(model, ids, alone, ScoredOutput(2, 6))
        assert values[row] == pytest.approx(value, rel=1e-12)
        for gradient, expected in zip(gradients, own, strict=True):
            np.testing.assert_allclose(gradient[row], expected[0], rtol=1e-9, atol=1e-12)


@every_model
def test_the_score_is_that_of_the_model_which_is_left_as_it_was(name):
    model, ids = model_and_ids(name)
    logits, _ = model.forward(*ids)
    log_p, _ = log_softmax(logits)
    before, shape = model.state_dict(), repr(model)
    model.grads[...] = 7
    for score, expected in (("log-probability", log_p), ("logit", logits)):
        (value,), _ = scores_and_gradients(model, ids, input_vectors(model, ids), ScoredOutput(1, 5, score))
        assert value == expected[0, 1, 5]
    assert (model.grads == 7).all()
    assert repr(model) == shape
    assert all(np.array_equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (ScoredOutput(6, 0), "position is 6: there are 6 positions"),
        (ScoredOutput(0, V), "token is 11: there are 11 tokens"),
        (ScoredOutput(0, 0, "loss"), "score is 'loss': choose one of log-probability, logit"),
    ],
)
def test_an_output_that_does_not_exist(output, message):
    model, ids = model_and_ids("gpt-2")
    with pytest.raises(UserError, match=message):
        scores_and_gradients(model, ids, input_vectors(model, ids), output)
