"""Residual connections as sequences of operations: "n-da" is pre-norm and "-dan" is post-norm."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn import (
    AddNorm,
    Context,
    LayerNorm,
    Linear,
    PostNormResidual,
    PreNormResidual,
    SequenceResidual,
)

rng = np.random.default_rng(0)
X, H = rng.standard_normal((2, 2, 3, 6))
F8 = {"dtype": np.float64}


def through(residual, x, f):
    """Return y of a residual connection around f, and the cache."""
    return residual.forward(x, f.forward, Context(train=True, rng=np.random.default_rng(1)))


@pytest.mark.parametrize(("sequence", "kind"), [("n-da", PreNormResidual), ("-dan", PostNormResidual)])
def test_the_named_residuals_are_equal_to_the_bit(sequence, kind):
    f = Linear(6, 6, rng=np.random.default_rng(2), **F8)
    pair = SequenceResidual(6, sequence=sequence, dropout=0.3, **F8), kind(6, dropout=0.3, **F8)
    for residual in pair:
        for parameter in residual.parameters():
            parameter.value += 0.3 * np.random.default_rng(3).standard_normal(6)
    (one, caches), (other, other_caches) = (through(residual, X, f) for residual in pair)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        pair[0].backward(H, caches, f.backward), pair[1].backward(H, other_caches, f.backward)
    )
    grads = [[p.grad for p in residual.parameters()] for residual in pair]
    np.testing.assert_array_equal(*grads)


def test_post_norm_without_bias_has_a_bias_of_0():
    f = Linear(6, 6, rng=np.random.default_rng(2), **F8)
    pair = [PostNormResidual(6, dropout=0.3, bias=bias, **F8) for bias in (True, False)]
    for residual in pair:
        residual.norm.gain.value *= 0.7
    (one, caches), (other, other_caches) = (through(residual, X, f) for residual in pair)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        pair[0].backward(H, caches, f.backward), pair[1].backward(H, other_caches, f.backward)
    )
    assert [name for name, _ in pair[1].named_parameters()] == ["norm.gain"]
    np.testing.assert_array_equal(pair[0].norm.gain.grad, pair[1].norm.gain.grad)


def test_norms_before_and_after_the_sublayer_and_after_the_sum():
    norm = LayerNorm(6, **F8)
    f = Linear(6, 6, rng=np.random.default_rng(2), **F8)
    entered = f.forward(norm.forward(X)[0])[0]
    for sequence, due in {
        "n-an": norm.forward(X + entered)[0],
        "n-na": X + norm.forward(entered)[0],
        "n-a": X + entered,
        "-a": X + f.forward(X)[0],
    }.items():
        y, _ = through(SequenceResidual(6, sequence=sequence, dropout=0.5, **F8), X, f)
        np.testing.assert_allclose(y, due, rtol=1e-14, err_msg=sequence)


def test_a_model_with_sequences_equals_the_model_with_names():
    sizes = {"source_vocab": 9, "target_vocab": 9, "d_model": 8, "d_ff": 12, "n_heads": 2, "n_layers": 2}
    source, target = np.array([[4, 5, 3]]), np.array([[2, 6, 7]])
    for sequence, name in {"n-da": "pre", "-dan": "post"}.items():
        logits = [
            Transformer(
                TransformerConfig(norm=norm, final_norm=name == "pre", **sizes), rng=np.random.default_rng(0)
            ).forward(source, target)[0]
            for norm in (sequence, name)
        ]
        np.testing.assert_array_equal(*logits)


@pytest.mark.parametrize("sequence", ["n-", "n-d", "n-aa", "n-dad", "da", "a-n", "nd-a", "n-xa", "-"])
def test_invalid_sequences(sequence):
    with pytest.raises(
        UserError, match="is not a sequence for a residual connection: write n or nothing, a dash"
    ):
        SequenceResidual(6, sequence=sequence)


def test_a_configuration_refuses_invalid_sequences_too():
    with pytest.raises(UserError, match="'n-d' is not a sequence for a residual connection"):
        TransformerConfig(norm="n-d")
    with pytest.raises(UserError, match="norm='n-da' leaves the top of each stack unnormalized"):
        TransformerConfig(norm="n-da")
    TransformerConfig(norm="n-dan")


@pytest.mark.parametrize("wrong", [np.ones((2, 3, 5)), np.ones((2, 3, 6), int), [[0.5] * 6]])
def test_the_norm_of_a_sum_refuses_other_inputs(wrong):
    layer = AddNorm(6, **F8)
    for name, inputs in {"x": (wrong, X), "h": (X, wrong)}.items():
        with pytest.raises(UserError, match=rf"^AddNorm takes .*\b{name} (is|has|of)\b"):
            layer.forward(*inputs)
