"""npformer against PyTorch, from the golden file: outputs and every parameter's gradient.

tests/oracle/make_golden.py writes the file, and CI checks that PyTorch still computes it.
"""

import functools

import numpy as np
import pytest
from golden import TOLERANCE, assert_close, golden, named
from paths import ORACLE

from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn.attention import MultiHeadAttention
from npformer.training.optimizer import clip_global_norm

SETTINGS = {  # the models of oracle/oracle_models.py as settings of npformer
    "post": {"activation": "relu", "tied": "none"},
    "pre": {"activation": "gelu", "tied": "none", "norm": "pre", "zero_padding": True},
    "tied": {"activation": "swish", "tied": "all"},
}
MODELS = [(name, fused) for name in SETTINGS for fused in (False, True)]


def assert_gradients(module, expected):
    """Check the gradient of every parameter, and that none is missing."""
    assert expected.keys() == dict(module.named_parameters()).keys()
    for name, parameter in module.named_parameters():
        if name.endswith("key.bias"):  # a key bias shifts all scores of a query equally
            assert np.abs([parameter.grad, expected[name]]).max() < 1e-13
        else:
            assert np.abs(expected[name]).max() > 1e-4
            assert_close(parameter.grad, expected[name])


def apart(parameters):
    """Split fused projections into query, key and value, as they are without fused_projections."""
    cut = {}
    for name, array in parameters.items():
        path, _, last = name.rpartition(".")
        stem, dot, layer = path.rpartition(".")
        parts = layer.split("_")
        if set(parts) <= {"query", "key", "value"}:
            for part, piece in zip(parts, np.split(array, len(parts), -1), strict=True):
                cut[f"{stem}{dot}{part}.{last}"] = piece
        else:
            cut[name] = array
    return cut


def build(arrays, name, fused):
    """Build the model with PyTorch's weights."""
    source_vocab = len(arrays["value/source.tokens.weight"])
    config = TransformerConfig(
        source_vocab=source_vocab,
        target_vocab=arrays["logits"].shape[-1],
        d_model=16,
        n_heads=4,
        d_ff=32,
        n_layers=2,
        max_length=10,
        dropout=0.0,
        final_norm=True,
        output_bias=True,
        fused_projections=fused,
        **SETTINGS[name],
    )
    model = Transformer(config, dtype=np.float64)
    values = named(arrays, "value")
    model.load_state_dict(values if fused else apart(values))
    return model


@functools.cache
def passed(name, fused):
    """Return (arrays, model, logits, loss) after one forward and one backward pass."""
    arrays = golden(name)
    model = build(arrays, name, fused)
    logits, cache = model.forward(arrays["source"], arrays["target_in"])
    loss, loss_cache = cross_entropy(logits, arrays["target"], smoothing=0.1, pad_id=0)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    return arrays, model, logits, loss


@pytest.mark.parametrize(("name", "fused"), MODELS)
def test_logits_and_loss(name, fused):
    arrays, _, logits, loss = passed(name, fused)
    real = arrays["target"] != 0
    assert 0 < real.sum() < real.size
    assert_close(logits[real], arrays["logits"][real])
    assert_close(loss, arrays["loss"])


@pytest.mark.parametrize(("name", "fused"), MODELS)
def test_every_parameters_gradient(name, fused):
    arrays, model, _, _ = passed(name, fused)
    assert_gradients(model, named(arrays, "grad") if fused else apart(named(arrays, "grad")))


def test_multi_head_attention_with_padded_keys():
    arrays = golden("multi_head")
    layer = MultiHeadAttention(12, 3, dtype=np.float64)
    layer.load_state_dict(apart(named(arrays, "value")))
    y, cache = layer.forward(arrays["query"], arrays["key"], arrays["value"], arrays["mask"])
    assert_close(y, arrays["y"])
    for ours, name in zip(layer.backward(arrays["dy"], cache), ("query", "key", "value"), strict=True):
        assert_close(ours, arrays[f"d{name}"])
    assert_gradients(layer, apart(named(arrays, "grad")))


def test_clipping():
    """PyTorch scales to max_norm · norm / (norm + 1e-6), npformer to max_norm exactly."""
    arrays = golden("clip")
    grads, norm = arrays["grads"].copy(), float(arrays["norm"])
    assert clip_global_norm(grads, 0.5) == pytest.approx(norm, rel=TOLERANCE)
    assert_close(grads, arrays["clipped"] * (norm + 1e-6) / norm)


@pytest.mark.torch
def test_the_golden_file_contains_what_pytorch_computes(monkeypatch):
    """CI runs this check; here it runs only if PyTorch is installed."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ORACLE)
    import make_golden

    assert make_golden.check() == ""
