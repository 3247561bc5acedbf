"""Mixture: the number of its parameters, decoding, the balance in the loss, and impossible settings."""

import numpy as np
import pytest

from npformer import UserError
from npformer.data.text import windows
from npformer.functional import cross_entropy
from npformer.functional.experts import route
from npformer.models.gpt import GPT, LlamaConfig
from npformer.models.mixture import MixtureConfig
from npformer.models.registry import build
from npformer.nn import MixtureOfExperts
from npformer.nn.experts import MixtureCache
from npformer.training import loss_and_gradients

SIZES = {"vocab_size": 9, "d_model": 8, "n_layers": 3, "n_heads": 4, "context": 8, "n_experts": 3}
OPTIONS = {
    "Mixtral": {"tied": False},
    "Qwen3-MoE": {"qk_norm": True, "dense": (1,), "d_expert": 5, "n_kv_heads": 2},
    "plain experts": {"activation": "gelu", "bias": True, "norm": "layer", "top_k": 1, "renormalize": False},
}
IDS = np.array([[2, 5, 6, 7, 5, 1, 0], [4, 8, 3, 0, 0, 2, 8]])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_parameters_and_decoding(options):
    model = build(MixtureConfig(**SIZES | options), rng=np.random.default_rng(0), dtype=np.float64)
    assert model.config.count_parameters() == model.count_parameters()
    kinds = [type(layer.feed_forward) is MixtureOfExperts for layer in model.layers]
    assert kinds == [layer not in model.config.dense for layer in range(3)]
    model.values += 0.3 * np.random.default_rng(1).standard_normal(model.values.shape)
    logits, cache = model.forward(IDS)
    used = [
        np.unique(c.route.chosen) for layer in cache.layers if type(c := layer.feed_forward) is MixtureCache
    ]
    assert max(map(len, used)) > 1
    kv_cache = None
    for t in range(IDS.shape[1]):
        step, kv_cache = model.decode_step(IDS[:, t], t, kv_cache)
        np.testing.assert_allclose(step, logits[:, t], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_without_a_layer_of_experts_it_is_a_gpt(positions):
    mixture = build(MixtureConfig(**SIZES, positions=positions, dense=(0, 1, 2)), dtype=np.float64)
    sizes = {name: size for name, size in SIZES.items() if name != "n_experts"}
    gpt = GPT(LlamaConfig(**sizes, positions=positions), dtype=np.float64)
    for mine, other in zip(gpt.parameters(), mixture.parameters(), strict=True):
        mine.value[...] = other.value
    np.testing.assert_array_equal(mixture.forward(IDS)[0], gpt.forward(IDS)[0])


def test_the_weights_of_the_experts_of_a_token_sum_to_1_by_default():
    layer, x = MixtureOfExperts(8, 4, 3, dtype=np.float64), np.random.default_rng(0).standard_normal((5, 8))
    y, cache = layer.forward(x)
    np.testing.assert_allclose(cache.route.weights.sum(-1), 1)
    assert cache.route.chosen.shape == (5, 2)  # of two experts by default
    with pytest.raises(UserError, match=r"MixtureOfExperts.backward takes dy of shape \(\.\.\., 8\) and got"):
        layer.backward(y[:, :4], cache)


def test_a_layer_has_no_biases_by_default():
    names = [name for name, _ in MixtureOfExperts(8, 4, 1, 1).named_parameters()]
    assert names == ["router.weight", *(f"experts.0.{part}.weight" for part in ("gate", "value", "outer"))]


def test_of_equally_probable_experts_the_first_ones_are_chosen():
    logits = np.tile([0.0, 1.0, 1.0], (2, 100))
    assert route(logits, 3)[1].chosen.tolist() == [[1, 2, 4]] * 2


def test_a_layer_has_at_least_as_many_experts_as_a_token_chooses():
    assert MixtureOfExperts(8, 4, 3, 3).top_k == 3
    with pytest.raises(UserError, match="top_k is 4 and n_experts is 3: choose at most all experts"):
        MixtureOfExperts(8, 4, 3, 4)


def test_a_training_step_adds_the_balance_of_every_layer():
    """The loss is the cross-entropy plus weight · Σ balance, and the gradients are linear in the weight."""
    batch, losses, grads = windows(IDS.ravel(), np.array([0, 5]), 8), [], []
    for weight in (0.0, 0.5, 1.0):
        model = build(MixtureConfig(**SIZES, balance_weight=weight), dtype=np.float64)
        losses.append(loss_and_gradients(model, [batch])[0])
        grads.append(model.grads.copy())
    logits, cache = model.forward(batch.ids)
    balance = sum(layer.feed_forward.balance for layer in cache.layers)
    assert 5.9 < balance < 9  # k = 2 if it is even, and E = 3 at most, in each of three layers
    np.testing.assert_allclose(losses[0], cross_entropy(logits, batch.target_out)[0])
    np.testing.assert_allclose(losses, losses[0] + np.array([0, 0.5, 1]) * balance)
    assert np.abs(grads[1] - grads[0]).max() > 1e-3
    np.testing.assert_allclose(grads[2] - grads[0], 2 * (grads[1] - grads[0]), atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_k": 4}, "top_k is 4 and n_experts is 3: choose at most all experts"),
        ({"n_experts": 0}, "^n_experts is 0: it must be"),
        ({"d_expert": 0}, "d_expert is 0"),
        ({"balance_weight": -1}, "balance_weight is -1: it must be a number, 0 or more"),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(UserError, match=message):
        MixtureConfig(**SIZES | settings)
