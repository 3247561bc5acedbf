"""PyTorch as the oracle of relative positions and of halting: values and gradients to 1e-10.

The oracle follows the papers' formulas alone, with autograd for the gradients.
"""

import numpy as np
import pytest

import npformer.functional as F
from npformer.checking.cases.universal import N_STEPS, TOOK
from npformer.nn.attention import RelativeAttention

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

rng = np.random.default_rng(0)
B, T, D, H, K = 2, 6, 8, 2, 4  # sentences, tokens, width, heads, width of a head
CAUSAL = np.tri(T, dtype=bool)


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


def shaw(x, leaves, max_distance, mask):
    """Compute equations 3 and 4 by einsum from the (T, T, K) vectors of all pairs."""

    def heads(name):
        return (x @ leaves[f"{name}.weight"] + leaves[f"{name}.bias"]).view(B, T, H, K)

    place = torch.arange(T)
    pairs = (place - place[:, None]).clamp(-max_distance, max_distance) + max_distance
    a_k, a_v = leaves["key_positions"][pairs], leaves["value_positions"][pairs]  # (T, T, K)
    q, k, v = heads("query"), heads("key"), heads("value")
    e = (torch.einsum("bihk,bjhk->bhij", q, k) + torch.einsum("bihk,ijk->bhij", q, a_k)) / K**0.5
    alpha = torch.softmax(e.masked_fill(~torch.tensor(mask), -torch.inf), -1)
    z = torch.einsum("bhij,bjhk->bihk", alpha, v) + torch.einsum("bhij,ijk->bihk", alpha, a_v)
    return z.reshape(B, T, D) @ leaves["output.weight"] + leaves["output.bias"]


@pytest.mark.parametrize("max_distance", [1, 3, 9])
@pytest.mark.parametrize("mask", [np.ones((T, T), bool), CAUSAL], ids=["all", "causal"])
def test_relative_attention(max_distance, mask):
    layer = RelativeAttention(D, H, max_distance=max_distance, dtype=np.float64)
    for parameter in layer.parameters():
        parameter.value[...] = rng.standard_normal(parameter.shape)
    leaves = {n: torch.tensor(p.value, requires_grad=True) for n, p in layer.named_parameters()}
    x, dy = rng.standard_normal((2, B, T, D))
    inputs = torch.tensor(x, requires_grad=True)
    expected = shaw(inputs, leaves, max_distance, mask)
    expected.backward(torch.tensor(dy))
    y, cache = layer.forward(x, mask=mask)
    close(y, expected)
    close(layer.backward(dy, cache), inputs.grad)
    for name, parameter in layer.named_parameters():
        close(parameter.grad, leaves[name].grad)


def test_a_mixture_of_states():
    """List the weights of each position, the last of which is the remainder, and the ponder cost."""
    states, p = rng.standard_normal((N_STEPS, 2, 4, 3)), rng.uniform(0.1, 0.4, (N_STEPS, 2, 4))
    dy, dponder = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 4))
    leaves = [torch.tensor(a, requires_grad=True) for a in (states, p)]
    y, cache = F.mix_states(states, p, TOOK)
    loss = torch.zeros(())
    for b, t in np.ndindex(2, 4):
        n = int(TOOK[:, b, t].sum())
        if n:
            spent = leaves[1][: n - 1, b, t]
            weights = torch.cat([spent, 1 - spent.sum(0, keepdim=True)])
            mixed = weights @ leaves[0][:n, b, t]
            close(y[b, t], mixed)
            loss = loss + mixed @ torch.tensor(dy[b, t]) + (n + weights[-1]) * dponder[b, t]
    loss.backward()
    for ours, leaf in zip(F.mix_states_backward(dy, cache, dponder=dponder), leaves, strict=True):
        close(ours, leaf.grad)
