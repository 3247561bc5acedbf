"""Relative positions: the layer, and Transformers that use them."""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_config, tiny_model

import npformer.functional as F
from npformer import TransformerConfig, UserError
from npformer.cli.main import main
from npformer.functional.masks import causal_mask
from npformer.kernels import plain_pairs
from npformer.models.registry import attention_layers, config_from_checkpoint
from npformer.nn.attention import MultiHeadAttention, RelativeAttention
from npformer.storage.checkpoint import load_checkpoint

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 7, 6))


def heads(make=RelativeAttention, dtype=np.float64, **settings):
    """Return multi-head attention with biases that are not 0."""
    settings = {"max_distance": 2, **settings} if make is RelativeAttention else settings
    layer = make(6, 3, rng=np.random.default_rng(1), dtype=dtype, **settings)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value += np.random.default_rng(2).standard_normal(parameter.shape).astype(dtype)
    return layer


# The layer.


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.4}, {"fused": "qkv", "d_value": 3}], ids=str)
def test_without_vectors_it_is_multi_head_attention_to_the_bit(settings):
    outcomes = []
    with plain_pairs():  # relative attention has no kernel, and a kernel would sum in another order
        for more in ({"make": MultiHeadAttention}, {"on_keys": False, "on_values": False}):
            layer = heads(**more, **settings)
            y, cache = layer.forward(X, mask=causal_mask(7, X), train=True, rng=np.random.default_rng(3))
            outcomes.append([y, layer.backward(np.cos(y), cache), *(p.grad for p in layer.parameters())])
    for theirs, ours in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_heads_share_the_vectors():
    layer = heads(max_distance=4, d_value=3)
    shapes = {n: p.shape for n, p in layer.named_parameters() if n.endswith("positions")}
    assert shapes == {"key_positions": (9, 2), "value_positions": (9, 3)}
    _, cache = layer.forward(X)
    (q, k, v), _ = layer.project(X, X, X)
    for head in range(3):
        one = [a[:, head : head + 1] for a in (q, k, v)]
        y, _ = F.relative_attention(*one, layer.key_positions.value, layer.value_positions.value)
        np.testing.assert_allclose(cache.output.x[..., 3 * head : 3 * head + 3], y[:, 0], rtol=1e-12)


def test_a_shift_of_the_sentence_changes_nothing():
    """A sentence three positions further on, behind padding, has the same outputs."""
    layer = heads()
    moved = np.concatenate([rng.standard_normal((2, 3, 6)), X], 1)
    y, _ = layer.forward(moved, mask=np.arange(10) >= 3)
    np.testing.assert_allclose(y[:, 3:], layer.forward(X)[0], rtol=1e-11)


def test_the_order_of_the_tokens_matters():
    order = np.array([2, 0, 1, 4, 3, 6, 5])
    plain, relative = heads(MultiHeadAttention), heads()
    np.testing.assert_allclose(plain.forward(X[:, order])[0], plain.forward(X)[0][:, order], rtol=1e-10)
    assert np.abs(relative.forward(X[:, order])[0] - relative.forward(X)[0][:, order]).max() > 0.01


def test_beyond_the_largest_distance_only_the_side_matters():
    """Exchanging tokens 0 .. 3 does not change the output at the last position, but moving token 4 does."""
    layer = heads()
    changed = X[:, [3, 1, 0, 2, 4, 5, 6]]
    whole, _ = layer.forward(X)
    np.testing.assert_allclose(layer.forward(changed)[0][:, 6], whole[:, 6], rtol=1e-11)
    assert np.abs(layer.forward(X[:, [0, 1, 2, 5, 4, 3, 6]])[0][:, 6] - whole[:, 6]).max() > 0.01


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: heads(max_distance=0), "max_distance is 0: it must be a whole number, 1 or more"),
        (lambda: heads(max_distance=2.5), "max_distance is 2.5"),
        (lambda: heads().forward(X, X), "separate keys were given: use MultiHeadAttention"),
        (lambda: heads().project_memory(X), "separate keys were given: use MultiHeadAttention"),
        (lambda: RelativeAttention(7, 3), "d_model 7 is not divisible by 3 heads"),
    ],
)
def test_invalid_inputs_are_refused(mistake, message):
    with pytest.raises(UserError, match=message):
        mistake()


# Transformers.


@pytest.mark.parametrize("fused", [False, True])
def test_a_transformer_uses_them_in_self_attention_only(fused):
    model = tiny_model(positions="relative", max_distance=3, fused_projections=fused)
    assert model.source.positions is None
    assert model.target.positions is None
    named = [name for name, _ in model.named_parameters() if "positions" in name]
    assert named == [
        f"{stack}.layers.{i}.self_attention.{which}_positions"
        for stack in ("encoder", "decoder")
        for i in range(2)
        for which in ("key", "value")
    ]
    source, target_in, _ = tiny_batch()
    _, cache = model.forward(source, target_in)
    for kind, shape in {"encoder": (3, 2, 6, 6), "decoder": (3, 2, 5, 5), "cross": (3, 2, 5, 6)}.items():
        assert [weights.shape for weights in attention_layers(cache, kind)] == [shape] * 2


def test_settings_of_a_configuration():
    assert TransformerConfig().max_distance == 16
    assert not tiny_config(positions="relative").adds_positions
    assert tiny_config(positions="learned").adds_positions
    assert tiny_config(positions="relative", d_model=9, n_heads=3).d_model == 9  # no sinusoids
    with pytest.raises(UserError, match="max_distance is 0: it must be a whole number, 1 or more"):
        tiny_config(max_distance=0)


def test_the_commands_for_training_and_translating(tmp_path, monkeypatch):
    """The checkpoint has the settings, and a model that translates."""
    monkeypatch.chdir(tmp_path)
    settings = "--set positions=relative --set max_distance=3 --set d_model=8 --set d_ff=8 --set n_heads=2"
    assert main(f"train --task reverse --steps 3 --run run {settings}".split()) == 0
    model = config_from_checkpoint(load_checkpoint(tmp_path / "run" / "last.safetensors"))
    assert (model.positions, model.max_distance) == ("relative", 3)
    assert main(["translate", "--model", "run", "1 2 3"]) == 0
