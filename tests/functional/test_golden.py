"""Pairs against PyTorch, from the golden file. tests/models/test_torch_parity.py has layers and models."""

import pytest
from golden import assert_close, golden

import npformer.functional as F

PAIRS = {  # the arguments by their names in the file, and the settings
    **{name: (["x"], {}) for name in ("relu", "gelu", "gelu_tanh", "swish", "softmax", "log_softmax")},
    "layer_norm": (["x", "gain", "bias"], {"eps": 1e-5}),
    "cross_entropy": (["logits", "targets"], {"smoothing": 0.1, "pad_id": 0}),
    "kl_divergence": (["logits", "q"], {}),
    "l2_distance": (["logits", "q"], {}),
    "lora_linear": (["x", "a", "b", "weight"], {"scale": 0.5}),
    "dpo": (["chosen", "rejected", "reference_margin"], {"beta": 0.7}),
    "grpo": (["log_probs", "old", "reference", "advantages", "mask"], {"beta": 0.3}),
    "route": (["logits"], {"k": 2}),
    "combine": (["weights", "outputs"], {}),
    "load_balancing": (["logits", "chosen"], {}),
    "attention": (["q", "k", "v", "mask"], {}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients(name):
    arrays, (names, settings) = golden(name), PAIRS[name]
    y, cache = getattr(F, name)(*(arrays[argument] for argument in names), **settings)
    assert_close(y, arrays["y"])
    grads = getattr(F, f"{name}_backward")(arrays["dy"], cache)
    expected = [arrays[f"d{argument}"] for argument in names if f"d{argument}" in arrays]
    for ours, theirs in zip(grads if isinstance(grads, tuple) else (grads,), expected, strict=True):
        assert_close(ours, theirs)
