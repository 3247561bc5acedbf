"""The Universal Transformer as a translator: its loss and settings. test_translators.py has the rest."""

import numpy as np
import pytest

from npformer.checking.whole import ModelWithLoss
from npformer.cli.limits import count_parameters
from npformer.data import END, pad
from npformer.data.loader import Batch
from npformer.errors import UserError
from npformer.models.registry import (
    build,
    config_from_settings,
    require_size,
)
from npformer.models.universal import UniversalConfig
from npformer.training import loss_and_gradients

SIZES = {
    "source_vocab": 11,
    "target_vocab": 11,
    "d_model": 8,
    "d_ff": 16,
    "n_heads": 2,
    "n_layers": 4,
    "max_length": 12,
    "dropout": 0.0,
    "halting_bias": -0.5,
}
KINDS = {
    "post-norm": {},
    "pre-norm": {"norm": "pre", "final_norm": True, "tied": "all"},
    "halts early": {"halting_bias": 2.0},
    "fixed steps": {"halting": False, "positions": "none"},
}
every_kind = pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
TARGET = np.array([[2, 7, 5, 8, 4], [2, 6, 4, 9, 0], [2, 8, 0, 0, 0]])
BATCH = Batch(
    pad([[5, 6, 7, END], [8, END]]), np.array([[2, 5, 6], [2, 9, 0]]), np.array([[5, 6, 3], [9, 3, 0]])
)


def random_model(settings, seed=0):
    """Return a float64 model whose parameters, biases included, are random, so that positions differ."""
    model = build(UniversalConfig(**(SIZES | settings)), rng=np.random.default_rng(seed), dtype=np.float64)
    model.values[...] += 0.4 * np.random.default_rng(seed + 1).standard_normal(model.values.shape)
    for stack in (model.encoder, model.decoder):
        if stack.halting is not None:
            stack.halting.weight.value *= 3
    return model


def random_source(lengths=(5, 1, 8), seed=0):
    rng = np.random.default_rng(seed)
    return pad([[*rng.integers(4, 11, n).tolist(), END] for n in lengths])


# The forward pass and the loss.


def test_the_training_loss_contains_the_ponder_cost():
    """The loss is the cross-entropy + weight · Σ ponder / tokens; its gradient is that of ModelWithLoss."""
    model, free = random_model({"ponder_weight": 0.3}), random_model({"ponder_weight": 0.0})
    loss, tokens = loss_and_gradients(model, [BATCH])
    _, cache = model.forward(BATCH.source, BATCH.target_in)
    cost = cache.encoder.ponder[BATCH.source != 0].sum() + cache.decoder.ponder[BATCH.target_in != 0].sum()
    assert tokens == 5
    assert loss == pytest.approx(loss_and_gradients(free, [BATCH])[0] + 0.3 * cost / 5, rel=1e-12)
    assert abs(model.grads - free.grads).max() > 1e-3
    again = random_model({"ponder_weight": 0.3})
    again.zero_grad()
    checked = ModelWithLoss(again)  # the gradient checks show that its gradient is right
    also, cache = checked.forward(*BATCH.inputs, BATCH.target_out)
    checked.backward(1.0, cache)
    assert float(also) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(model.grads, again.grads, rtol=1e-9, atol=1e-14)


@every_kind
def test_its_parameters_are_counted_without_building_it(settings):
    config = UniversalConfig(**(SIZES | settings))
    count = build(config).count_parameters()
    assert count_parameters(config) == count >= config.least_parameters > count / 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": "learned"}, "positions is 'learned': a Universal Transformer adds sinusoids"),
        ({"halting_epsilon": 1.0}, "epsilon is 1.0: it must be above 0 and below 1"),
        ({"halting_bias": np.inf}, "halting_bias is inf: it must be a finite number"),
        ({"ponder_weight": -0.1}, "ponder_weight is -0.1: it must be a number, 0 or more"),
        ({"ponder_weight": np.nan}, "ponder_weight is nan: it must be a number, 0 or more"),
        ({"n_layers": 1001}, "n_layers is 1,001 steps: give at most 1,000"),
        ({"d_hidden": 2}, "a UniversalConfig has no setting 'd_hidden'"),
    ],
)
def test_invalid_settings(changes, message):
    with pytest.raises(UserError, match=message):
        UniversalConfig().replace(**changes)


def test_a_checkpoint_that_describes_a_larger_model_than_it_holds():
    settings = UniversalConfig(**SIZES).to_dict() | {"d_ff": 10**9}
    with pytest.raises(UserError, match="the settings describe a model of more than"):
        require_size(config_from_settings("universal", settings), random_model({}).state_dict())


def test_packing_is_refused():
    with pytest.raises(UserError, match="a Universal Transformer does not support packing"):
        random_model({}).forward(random_source(), TARGET, packed=True)
