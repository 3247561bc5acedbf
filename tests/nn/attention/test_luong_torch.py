"""PyTorch as the oracle of similarities and of Luong's attentions: values and gradients to 1e-10.

The oracle follows the papers' formulas alone, with autograd for the gradients.
"""

import numpy as np
import pytest

from npformer.nn.attention import (
    AttentionalState,
    GlobalAttention,
    LocalMonotonic,
    LocalPredictive,
    Similarity,
    SimilarityAttention,
)
from npformer.nn.attention.similarity import SIMILARITIES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

rng = np.random.default_rng(0)
B, T, S, D = 3, 4, 7, 6
LENGTHS = np.array([7, 5, 2])
WORDS = np.arange(S) < LENGTHS[:, None]  # (B, S)
every_kind = pytest.mark.parametrize("kind", SIMILARITIES)


def score(kind, q, k, weights):
    """Compute every query with every key from the expanded pairs of vectors. Shapes: (.., T, S)."""
    q = q.unsqueeze(-2).expand(*q.shape[:-1], k.shape[-2], q.shape[-1])
    k = k.unsqueeze(-3).expand(*q.shape[:-1], k.shape[-1])
    if kind == "dot":
        return (q * k).sum(-1)
    if kind == "general":
        return torch.einsum("...i,ij,...j->...", q, weights["weight"], k)
    both = torch.cat([q, k], -1)
    if kind == "concat":
        return both @ weights["weight"]
    return torch.tanh(both @ torch.cat([weights["query_weight"], weights["key_weight"]])) @ weights["v"]


def parameters(layer):
    """Return the layer's parameters as leaf tensors by their names."""
    return {n: torch.tensor(p.value, requires_grad=True) for n, p in layer.named_parameters()}


def similarity_of(leaves):
    return {n.removeprefix("similarity."): leaf for n, leaf in leaves.items() if n.startswith("similarity.")}


def masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)


def compare(layer, inputs, settings, oracle):
    """Compare values and gradients of the layer and of oracle(tensors, leaves) for the same dy."""
    tensors, leaves = [torch.tensor(x, requires_grad=True) for x in inputs], parameters(layer)
    expected = oracle(tensors, leaves)
    y, cache = layer.forward(*inputs, **settings)
    np.testing.assert_allclose(y, expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    dy = rng.standard_normal(y.shape)
    expected.backward(torch.tensor(dy))
    for ours, tensor in zip(layer.backward(dy, cache), tensors, strict=True):
        np.testing.assert_allclose(ours, tensor.grad.numpy(), rtol=1e-10, atol=1e-12)
    for name, parameter in layer.named_parameters():
        np.testing.assert_allclose(
            parameter.grad, leaves[name].grad.numpy(), rtol=1e-10, atol=1e-12, err_msg=name
        )


def similarity(kind, width=5, **settings):
    width = D if kind == "dot" else width
    return Similarity(kind, D, width, rng=np.random.default_rng(1), dtype=np.float64, **settings)


def inputs_for(layer):
    return [rng.standard_normal((B, T, layer.d_query)), rng.standard_normal((B, S, layer.d_key))]


@every_kind
@pytest.mark.parametrize("scaled", [False, True])
def test_similarity(kind, scaled):
    layer = similarity(kind, scaled=scaled)

    def oracle(tensors, leaves):
        return score(kind, *tensors, leaves) / (layer.d_key**0.5 if scaled else 1)

    compare(layer, inputs_for(layer), {}, oracle)


@every_kind
def test_global_attention(kind):
    layer = GlobalAttention(similarity(kind))
    mask = torch.tensor(WORDS)[:, None]

    def oracle(tensors, leaves):
        return masked_softmax(score(kind, *tensors, similarity_of(leaves)), mask) @ tensors[1]

    compare(layer, inputs_for(layer.similarity), {"mask": WORDS}, oracle)


@every_kind
@pytest.mark.parametrize("start", [0, 1])
def test_local_monotonic(kind, start):
    layer = LocalMonotonic(similarity(kind), reach=3)
    away = torch.arange(S) - (start + torch.arange(T))[:, None]
    mask = torch.tensor(WORDS)[:, None] & (away.abs() <= 3)

    def oracle(tensors, leaves):
        return masked_softmax(score(kind, *tensors, similarity_of(leaves)), mask) @ tensors[1]

    compare(layer, inputs_for(layer.similarity), {"mask": WORDS, "start": start}, oracle)


@every_kind
@pytest.mark.parametrize("padded", [False, True])
def test_local_predictive(kind, padded):
    layer = LocalPredictive(similarity(kind), reach=2, rng=np.random.default_rng(2), dtype=np.float64)
    words = torch.tensor(WORDS) if padded else torch.ones((B, S), dtype=torch.bool)

    def oracle(tensors, leaves):
        h, memory = tensors
        hidden = torch.tanh(h @ leaves["position_weight"])
        p = words.sum(-1, keepdim=True) * torch.sigmoid(hidden @ leaves["position_v"])  # (B, T)
        away = torch.arange(S) - p[..., None]  # (B, T, S)
        mask = words[:, None] & (away.detach().abs() <= 2)
        aligned = masked_softmax(score(kind, h, memory, similarity_of(leaves)), mask)
        return (aligned * torch.exp(-(away**2) / (2 * 1.0**2))) @ memory

    compare(layer, inputs_for(layer.similarity), {"mask": WORDS} if padded else {}, oracle)


def test_attentional_state():
    layer = AttentionalState(D, 4, 3, rng=np.random.default_rng(1), dtype=np.float64)
    inputs = [rng.standard_normal((B, T, D)), rng.standard_normal((B, T, 4))]
    compare(
        layer, inputs, {}, lambda tensors, leaves: torch.tanh(torch.cat(tensors, -1) @ leaves["join.weight"])
    )


@every_kind
@pytest.mark.parametrize("scale", [False, True])
def test_several_heads(kind, scale):
    layer = SimilarityAttention(
        D, 2, similarity=kind, scale=scale, rng=np.random.default_rng(1), dtype=np.float64
    )
    for parameter in layer.parameters():
        parameter.value += 0.2 * rng.standard_normal(parameter.shape)
    mask = torch.tensor(WORDS)[:, None, None]

    def split(x, part, leaves):
        x = x @ leaves[f"{part}.weight"] + leaves[f"{part}.bias"]
        return x.unflatten(-1, (2, 3)).transpose(1, 2)  # (B, H, T, K)

    def oracle(tensors, leaves):
        q, (k, v) = (
            split(tensors[0], "query", leaves),
            (split(tensors[1], p, leaves) for p in ("key", "value")),
        )
        scores = score(kind, q, k, similarity_of(leaves)) / (3**0.5 if scale else 1)
        z = (masked_softmax(scores, mask) @ v).transpose(1, 2).flatten(-2)
        return z @ leaves["output.weight"] + leaves["output.bias"]

    inputs = [rng.standard_normal((B, T, D)), rng.standard_normal((B, S, D))]
    compare(layer, inputs, {"mask": WORDS[:, None, None]}, oracle)
