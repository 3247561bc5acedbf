"""Dropout: how much is dropped, and when."""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_model

from npformer import UserError
from npformer.functional import cross_entropy, cross_entropy_backward, dropout, dropout_backward
from npformer.layers import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_share_that_is_dropped_and_the_mean_that_is_kept(rate):
    x = np.ones(40_000)
    y, keep = dropout(x, rate, np.random.default_rng(0))
    deviation = np.sqrt(rate * (1 - rate) / x.size)
    assert abs((y == 0).mean() - rate) < 4 * deviation
    assert abs(y.mean() - 1) < 4 * deviation / (1 - rate)
    assert np.unique(keep).tolist() == [0, pytest.approx(1 / (1 - rate))]


def test_backward_drops_what_forward_dropped():
    x, dy = np.full((30, 30), 3.0), np.full((30, 30), 5.0)
    y, keep = dropout(x, 0.4, np.random.default_rng(0))
    np.testing.assert_array_equal(dropout_backward(dy, keep) / 5, y / 3)


def test_nothing_is_dropped_without_training():
    x = np.ones(1000)
    y, keep = Dropout(0.5).forward(x, train=False, rng=np.random.default_rng(0))
    assert y is x
    assert keep is None


def test_training_without_a_generator_is_refused():
    """Nobody means to train without the dropout that was asked for."""
    with pytest.raises(UserError, match=r"dropout at rate 0\.5 needs a generator"):
        Dropout(0.5).forward(np.ones(3), train=True)
    with pytest.raises(UserError, match=r"rate is 1\.5"):
        dropout(np.ones(3), 1.5, np.random.default_rng(0))


def test_rate_0_draws_nothing():
    rng, untouched = np.random.default_rng(0), np.random.default_rng(0)
    dropout(np.ones(5), 0.0, rng)
    assert rng.random() == untouched.random()


RATES = ["dropout", "embedding_dropout", "attention_dropout", "feed_forward_dropout"]


@pytest.mark.parametrize("setting", RATES)
def test_each_of_a_models_dropouts_acts_in_training_only(setting):
    """The same generator gives the same numbers again, another generator others."""
    model, plain = tiny_model(**{setting: 0.5}), tiny_model()
    source, target_in, _ = tiny_batch()

    def logits(seed, train=True):
        return model.forward(source, target_in, train=train, rng=np.random.default_rng(seed))[0]

    expected, _ = plain.forward(source, target_in)
    np.testing.assert_array_equal(logits(0, train=False), expected)
    np.testing.assert_array_equal(logits(0), logits(0))
    assert np.abs(logits(0) - expected).max() > 0.01
    assert np.abs(logits(0) - logits(1)).max() > 0.01


@pytest.mark.parametrize("setting", RATES)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradients_pass_through_each_dropout(setting, norm):
    """Along one direction in all parameters, against a central difference with the same entries dropped."""
    model = tiny_model(norm=norm, final_norm=True, activation="swish", **{setting: 0.4})
    source, target_in, target = tiny_batch()

    def loss():
        logits, cache = model.forward(source, target_in, train=True, rng=np.random.default_rng(0))
        loss, loss_cache = cross_entropy(logits, target, smoothing=0.1, pad_id=0)
        return loss, loss_cache, cache

    _, loss_cache, cache = loss()
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    direction = np.random.default_rng(1).choice([-1.0, 1.0], model.values.shape)
    start, step = model.values.copy(), 1e-6
    model.values[...] = start + step * direction
    ahead, _, _ = loss()
    model.values[...] = start - step * direction
    behind, _, _ = loss()
    assert (ahead - behind) / (2 * step) == pytest.approx(model.grads @ direction, rel=1e-6)


def test_attention_dropout_acts_on_the_weights_and_keeps_them_in_the_cache():
    """The cache's weights are whole, so that figures show the attention; keep stands beside them."""
    model = tiny_model(attention_dropout=0.5)
    source, target_in, _ = tiny_batch()
    _, cache = model.forward(source, target_in, train=True, rng=np.random.default_rng(0))
    attention = cache.encoder[0].self_attention.attention
    np.testing.assert_allclose(attention.weights.sum(-1), 1, rtol=1e-12)
    kept, factor = attention.keep  # as the kernels keep it
    assert set(np.unique(kept * factor)) == {0.0, 2.0}
