"""LoRA in a whole model: what learns, what stays, and merged weights. test_pairs.py has the gradients."""

import copy

import numpy as np

from npformer.models.gpt import GPT, GPTConfig
from npformer.nn import Linear, LoRALinear, add_lora, merge_lora
from npformer.training.optimizer import Adam

CONFIG = GPTConfig(vocab_size=7, d_model=8, n_layers=2, n_heads=2, context=6, activation="swiglu")
IDS = np.arange(6)[None]


def test_only_the_narrow_matrices_learn_and_the_merged_model_computes_the_same():
    model = GPT(CONFIG, rng=np.random.default_rng(0), dtype=np.float64)
    model.values[...] = np.random.default_rng(1).standard_normal(model.values.shape) / 4  # biases, too
    before = copy.deepcopy(model.state_dict())
    adapted, adapter = add_lora(model, 2, scale=0.5, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(adapted(IDS), model(IDS))  # b is 0 at first
    assert {part.scale for part in adapted.modules() if isinstance(part, LoRALinear)} == {0.5}
    linear = [part for part in model.modules() if isinstance(part, Linear)]
    assert sum(isinstance(part, LoRALinear) for part in adapted.modules()) == len(linear) == 10
    assert adapter.count_parameters() == sum(2 * sum(part.weight.shape) for part in linear)

    first = adapter.state_dict()
    optimizer = Adam(adapter)
    for _ in range(3):
        logits, cache = adapted.forward(IDS)
        adapter.zero_grad()
        adapted.backward(logits, cache)
        optimizer.step(0.05)
    assert all((value != first[name]).any() for name, value in adapter.state_dict().items())
    assert all(np.array_equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(name.endswith("weight") and p.has_grad for name, p in adapted.named_parameters())
    merged = merge_lora(model, adapted)
    assert abs(merged(IDS) - model(IDS)).max() > 0.1
    np.testing.assert_allclose(merged(IDS), adapted(IDS), rtol=1e-12)
    cached = [adapted.decode_step(IDS[:, :3], 0, None)[0], merged.decode_step(IDS[:, :3], 0, None)[0]]
    np.testing.assert_allclose(*cached, rtol=1e-12)


def test_the_initial_matrices_keep_the_size_of_their_input_and_differ_from_layer_to_layer():
    wide = LoRALinear(Linear(400, 3), 5)
    assert wide.scale == 1
    assert 0.9 < wide.a.value.std() * 400**0.5 < 1.1
    adapted, _ = add_lora(GPT(CONFIG), 2)
    firsts = [part.a.value[0, 0] for part in adapted.modules() if isinstance(part, LoRALinear)]
    assert len(set(firsts)) == len(firsts) == 10
    assert {part.scale for part in adapted.modules() if isinstance(part, LoRALinear)} == {1.0}


def test_a_layer_that_was_flattened_learns_too():
    layer = Linear(3, 3).flatten()
    lora, weight = LoRALinear(layer, 2), layer.weight.value.copy()
    y, cache = lora.forward(np.ones((1, 3), np.float32))
    lora.backward(y, cache)
    Adam(lora).step(0.1)
    assert lora.b.value.all()
    assert np.array_equal(layer.weight.value, weight)
