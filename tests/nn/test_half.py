"""Layers in float16: outputs and gradients of a large batch are those of float32, up to rounding errors."""

import numpy as np
import pytest

from npformer import nn

rng = np.random.default_rng(0)
X = rng.standard_normal((2500, 2, 8)) + 1
IDS = rng.integers(0, 7, (2500, 2))
# the layers, by a function of their settings, and what forward takes
LAYERS = {
    "Linear": (lambda **s: nn.Linear(8, 8, **s), X),
    "Embedding": (lambda **s: nn.Embedding(7, 8, **s), IDS),
    "InputEmbedding": (lambda **s: nn.InputEmbedding(7, 8, 9, **s), IDS),
    "FeedForward": (lambda **s: nn.FeedForward(8, 16, **s), X),
    "GatedFeedForward": (lambda **s: nn.GatedFeedForward(8, 16, **s), X),
    "MultiHeadAttention": (lambda **s: nn.MultiHeadAttention(8, 4, n_kv_heads=2, **s), X),
    "RelativeAttention": (lambda **s: nn.RelativeAttention(8, 2, **s), X),
    "SimilarityAttention": (lambda **s: nn.SimilarityAttention(8, 2, **s), X),
    "Similarity": (lambda **s: nn.GlobalAttention(nn.Similarity("perceptron", 8, 8, **s)), X, X),
    "LatentAttention": (lambda **s: nn.LatentAttention(8, 5, **s), X),
    "AttentionalState": (lambda **s: nn.AttentionalState(8, 8, **s), X, X),
    "Recurrent": (lambda **s: nn.Recurrent(8, 8, **s), X),
    "Bidirectional": (lambda **s: nn.Bidirectional(8, 4, **s), X),
    "LayerNorm": (lambda dtype, **_: nn.LayerNorm(8, dtype=dtype), X),
    "RMSNorm": (lambda dtype, **_: nn.RMSNorm(8, dtype=dtype), X),
    "BatchNorm": (lambda dtype, **_: nn.BatchNorm(8, dtype=dtype), X),
    "AddNorm": (lambda dtype, **_: nn.AddNorm(8, dtype=dtype), X, X),
}


@pytest.mark.parametrize("name", LAYERS)
def test_no_gradient_is_lost_in_a_large_batch(name):
    half, single = (outputs_and_gradients(*LAYERS[name], dtype) for dtype in (np.float16, np.float32))
    largest = max(np.abs(array).max() for array in single[1:])
    for found, right in zip(half, single, strict=True):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, right, rtol=0.02, atol=2e-3 * np.abs(right).max() + 1e-3 * largest)


def outputs_and_gradients(make, *rest):
    """Return the output of a layer, the gradients of its inputs, and those of its parameters."""
    *inputs, dtype = rest
    layer = make(rng=np.random.default_rng(1), dtype=dtype)
    for parameter in layer.parameters():
        parameter.value = parameter.value.astype(np.float16).astype(dtype)
    y, cache = layer.forward(*(x.astype(np.float16).astype(dtype) if x is not IDS else x for x in inputs))
    dy = np.random.default_rng(2).standard_normal(y.shape) + 1  # 5,000 numbers 1 would add up to 2,048
    grads = layer.backward(dy.astype(np.float16).astype(dtype), cache)
    grads = grads if isinstance(grads, tuple) else (grads,)
    return [y, *(dx for dx in grads if dx is not None), *(p.grad for p in layer.parameters())]
