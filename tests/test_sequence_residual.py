"""Residuals spelt out: the two that have names are the same, the others are what they say."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.layers import LayerNorm, Linear, Residual, SequenceResidual
from npformer.transformer import Transformer, TransformerConfig

rng = np.random.default_rng(0)
X, H = rng.standard_normal((2, 2, 3, 6))
F8 = {"dtype": np.float64}


def through(residual, x, f):
    """y of a residual round f, and the caches."""
    h, entered = residual.enter(x)
    h, linear = f.forward(h)
    y, cache = residual.join(x, h, entered, train=True, rng=np.random.default_rng(1))
    return y, (linear, cache)


def back(residual, dy, f, caches):
    linear, cache = caches
    dx, dh = residual.join_backward(dy, cache)
    return residual.enter_backward(dx, f.backward(dh, linear), cache)


@pytest.mark.parametrize(("sequence", "name"), [("n-da", "pre"), ("-dan", "post")])
def test_the_named_ones_to_the_bit(sequence, name):
    f = Linear(6, 6, rng=np.random.default_rng(2), **F8)
    pair = SequenceResidual(6, sequence=sequence, rate=0.3, **F8), Residual(6, norm=name, rate=0.3, **F8)
    for residual in pair:
        for parameter in residual.parameters():
            parameter.value += 0.3 * np.random.default_rng(3).standard_normal(6)
    (one, caches), (other, other_caches) = (through(residual, X, f) for residual in pair)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(back(pair[0], H, f, caches), back(pair[1], H, f, other_caches))
    grads = [[p.grad for p in residual.parameters()] for residual in pair]
    np.testing.assert_array_equal(*grads)


def test_a_norm_on_either_side_and_one_before_the_sum():
    norm = LayerNorm(6, **F8)
    f = Linear(6, 6, rng=np.random.default_rng(2), **F8)
    entered = f.forward(norm.forward(X)[0])[0]
    for sequence, due in {
        "n-an": norm.forward(X + entered)[0],
        "n-na": X + norm.forward(entered)[0],
        "n-a": X + entered,
        "-a": X + f.forward(X)[0],
    }.items():
        y, _ = through(SequenceResidual(6, sequence=sequence, rate=0.5, **F8), X, f)
        np.testing.assert_allclose(y, due, rtol=1e-14, err_msg=sequence)


def test_a_model_of_sequences_is_the_model_by_name():
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
def test_what_is_no_sequence(sequence):
    with pytest.raises(UserError, match="is no sequence round a sublayer: write n or nothing, a dash"):
        SequenceResidual(6, sequence=sequence)


def test_a_configuration_refuses_too():
    with pytest.raises(UserError, match="'n-d' is no sequence round a sublayer"):
        TransformerConfig(norm="n-d")
    with pytest.raises(UserError, match="norm='n-da' leaves the top of each stack unnormalized"):
        TransformerConfig(norm="n-da")
    TransformerConfig(norm="n-dan")
