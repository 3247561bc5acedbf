"""PyTorch as the oracle of the parts of decoder-only models: values and gradients to 1e-10.

The oracle follows the papers' formulas, or PyTorch's own layer where there is one, with autograd.
"""

import numpy as np
import pytest

from npformer.functional.masks import causal_mask
from npformer.nn import GatedFeedForward, RMSNorm, RotaryPositions
from npformer.nn.attention import MultiHeadAttention

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

B, T, D, H, G, K = 2, 6, 8, 4, 2, 6  # sentences, tokens, width, query heads, key heads, width of a head
F8 = {"dtype": np.float64}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


def compare(layer, oracle, **settings):
    """Compare y, dx and the gradient of every parameter. oracle(x, leaves) computes y in PyTorch."""
    for seed, parameter in enumerate(layer.parameters()):
        parameter.value[...] = normal(*parameter.shape, seed=seed)
    leaves = {name: torch.tensor(p.value, requires_grad=True) for name, p in layer.named_parameters()}
    x, dy = normal(B, T, D, seed=20), normal(B, T, D, seed=21)
    inputs = torch.tensor(x, requires_grad=True)
    expected = oracle(inputs, leaves)
    expected.backward(torch.tensor(dy))
    y, cache = layer.forward(x, **settings)
    close(y, expected)
    close(layer.backward(dy, cache), inputs.grad)
    for name, parameter in layer.named_parameters():
        assert parameter.grad.any(), name
        close(parameter.grad, leaves[name].grad)


def test_rms_norm():
    compare(
        RMSNorm(D, eps=1e-3, **F8),
        lambda x, leaves: torch.nn.functional.rms_norm(x, (D,), leaves["gain"], 1e-3),
    )


@pytest.mark.parametrize("activation", ["swiglu", "geglu"])
def test_gated_feed_forward(activation):
    f = {"swiglu": torch.nn.functional.silu, "geglu": torch.nn.functional.gelu}[activation]

    def oracle(x, leaves):
        gate, value = (x @ leaves[f"{name}.weight"] + leaves[f"{name}.bias"] for name in ("gate", "value"))
        return (f(gate) * value) @ leaves["outer.weight"] + leaves["outer.bias"]

    compare(GatedFeedForward(D, 5, activation=activation, bias=True, **F8), oracle)


def rotate_halves(x, base):
    """Rotate as the Llama models of Hugging Face do: x cos + rotate_half(x) sin."""
    angles = torch.arange(T)[:, None] * base ** (-torch.arange(0, K, 2, dtype=torch.float64) / K)
    cos, sin = (torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def rotate_interleaved(x, base):
    """Rotate as Meta's Llama does: pairs of neighbours as complex numbers times e^(i angle)."""
    angles = torch.arange(T)[:, None] * base ** (-torch.arange(0, K, 2, dtype=torch.float64) / K)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], K // 2, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).reshape(x.shape)


@pytest.mark.parametrize(
    ("layout", "rotate"), [("halves", rotate_halves), ("interleaved", rotate_interleaved)]
)
@pytest.mark.parametrize("window", [None, 3])
def test_grouped_attention_with_rotary_positions(layout, rotate, window):
    """The oracle of attention is scaled_dot_product_attention with enable_gqa."""
    mask = causal_mask(T, np.zeros(1), window=window)

    def oracle(x, leaves):
        def project(name, n_heads):
            return (x @ leaves[f"{name}.weight"]).view(B, T, n_heads, K).transpose(1, 2)

        q, k, v = project("query", H), project("key", G), project("value", G)
        z = torch.nn.functional.scaled_dot_product_attention(
            rotate(q, 100.0), rotate(k, 100.0), v, torch.tensor(mask), enable_gqa=True
        )
        return z.transpose(1, 2).reshape(B, T, H * K) @ leaves["output.weight"]

    rotary = RotaryPositions(T, K, base=100.0, layout=layout, **F8)
    layer = MultiHeadAttention(D, H, n_kv_heads=G, d_head=K, bias=False, rotary=rotary, **F8)
    compare(layer, oracle, mask=mask)
