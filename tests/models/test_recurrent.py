"""The recurrent translators: their parameters and settings. test_translators.py has decoding and training."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.models.recurrent import RecurrentConfig
from npformer.models.recurrent.config import ARCHITECTURES
from npformer.models.registry import architecture, build

SIZES = {"source_vocab": 11, "target_vocab": 11, "d_model": 6, "d_hidden": 8, "max_length": 12}


def random_model(settings, seed=0):
    """Return a float64 model whose parameters, biases included, are random, so that its choices are clear."""
    model = build(RecurrentConfig(**(SIZES | settings)), rng=np.random.default_rng(seed), dtype=np.float64)
    model.values[...] += 0.4 * np.random.default_rng(seed + 1).standard_normal(model.values.shape)
    return model


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_forget_bias_is_that_of_the_forget_gates(cell):
    """The gates are in the order i, f, g, o, and every other bias begins at 0."""
    model = build(RecurrentConfig(**SIZES, cell=cell, forget_bias=1.5))
    layers = {"left": model.encoder.reader.forwards, "right": model.encoder.reader.backwards}
    for layer in (*layers.values(), model.decoder.cell):
        n, bias = layer.d_hidden, layer.input_projection.bias.value
        expected = np.zeros_like(bias)
        if cell == "lstm":
            expected[n : 2 * n] = 1.5
        np.testing.assert_array_equal(bias, expected)
        assert not layer.hidden_projection.bias.value.any()


@pytest.mark.parametrize("name", ARCHITECTURES.names())
def test_a_preset_has_as_many_parameters_as_the_small_transformer(name):
    vocabularies = {"source_vocab": 284, "target_vocab": 380}
    small = build(architecture("small", **vocabularies)).count_parameters()
    assert small == 438_144
    assert abs(build(architecture(name, **vocabularies)).count_parameters() / small - 1) < 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "rnn"}, "cell is 'rnn': choose one of lstm, gru"),
        ({"attention": "luong"}, "attention is 'luong': choose one of none, additive, global"),
        ({"score": "cosine"}, "score is 'cosine'"),
        ({"d_hidden": 7}, "bidirectional needs an even d_hidden, and it is 7"),
        ({"attention": "additive", "feeding": True}, "feeding needs attention after the cell"),
        ({"dropout": 1}, "dropout is 1: it must be at least 0"),
        ({"forget_bias": float("nan")}, "forget_bias is nan: it must be a finite number"),
        ({"window": 0}, "window is 0: it must be a whole number, 1 or more"),
        ({"n_heads": 2}, "a RecurrentConfig has no setting 'n_heads'"),
    ],
)
def test_invalid_settings(changes, message):
    with pytest.raises(UserError, match=message):
        RecurrentConfig().replace(**changes)


def test_invalid_ids():
    model = random_model({})
    with pytest.raises(UserError, match=r"target_in\[0, 1\] is 11, outside the vocabulary of 11 tokens"):
        model.forward(np.array([[4, 3]]), np.array([[2, 11]]))
    with pytest.raises(UserError, match="source holds 1 sentences and target_in 2"):
        model.forward(np.array([[4, 3]]), np.array([[2], [2]]))
