"""PyTorch as the oracle of whole GPTs: logits and the gradient of every parameter to 1e-10.

The oracle is written by hand from the formulas of GPT-2 and Llama, with PyTorch's norms, activations,
attention and autograd.
"""

import numpy as np
import pytest

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.gpt import GPT, GPTConfig

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
functional = torch.nn.functional

SIZES = {"vocab_size": 9, "d_model": 12, "n_layers": 2, "n_heads": 3, "context": 8}
LLAMA = {"norm": "rms", "positions": "rotary", "n_kv_heads": 1, "activation": "swiglu", "bias": False}
OPTIONS = {
    "GPT-2": {},
    "nanoGPT": {"bias": False, "activation": "gelu"},
    "Llama": {**LLAMA, "tied": False},
    "window": {**LLAMA, "window": 3, "activation": "geglu"},
}
IDS = np.array([[2, 5, 6, 7, 5, 1, 0], [4, 8, 3, 0, 0, 2, 8]])


class Oracle:
    """The logits of a GPT, from its parameters as leaves of PyTorch."""

    def __init__(self, model):
        self.config = model.config
        self.leaves = {n: torch.tensor(p.value, requires_grad=True) for n, p in model.named_parameters()}

    def linear(self, x, name):
        y = x @ self.leaves[f"{name}.weight"]
        return y + self.leaves[f"{name}.bias"] if self.config.bias else y

    def norm(self, x, name):
        gain, bias, shape = self.leaves[f"{name}.gain"], self.leaves.get(f"{name}.bias"), x.shape[-1:]
        if self.config.norm == "rms":
            return functional.rms_norm(x, shape, gain, self.config.norm_eps)
        return functional.layer_norm(x, shape, gain, bias, self.config.norm_eps)

    def rotate(self, x):
        """Rotate as the Llama models of Hugging Face do."""
        if self.config.positions == "learned":
            return x
        width = x.shape[-1]
        frequencies = self.config.rotary_base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = torch.arange(x.shape[-2])[:, None] * frequencies
        cos, sin = (torch.cat([f(angles)] * 2, -1) for f in (torch.cos, torch.sin))
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    def attention(self, x, name):
        c, (batch, length, width) = self.config, x.shape
        sizes = [n * c.d_head for n in (c.n_heads, c.key_heads, c.key_heads)]
        q, k, v = (
            part.view(batch, length, -1, c.d_head).transpose(1, 2)
            for part in self.linear(x, f"{name}.query_key_value").split(sizes, -1)
        )
        reach = torch.ones(length, length, dtype=torch.bool)
        mask = reach.tril() & reach.triu(1 - (c.window or length))
        z = functional.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, mask, enable_gqa=True)
        return self.linear(z.transpose(1, 2).reshape(batch, length, width), f"{name}.output")

    def feed_forward(self, x, name):
        f = {"gelu_tanh": lambda h: functional.gelu(h, approximate="tanh"), "gelu": functional.gelu}
        f |= {"swiglu": functional.silu, "geglu": functional.gelu}
        activate = f[self.config.activation]
        if self.config.is_gated:
            h = activate(self.linear(x, f"{name}.gate")) * self.linear(x, f"{name}.value")
        else:
            h = activate(self.linear(x, f"{name}.inner"))
        return self.linear(h, f"{name}.outer")

    def logits(self, ids):
        x = self.leaves["embedding.tokens.weight"][ids]
        if self.config.positions == "learned":
            x = x + self.leaves["embedding.positions.weight"][: ids.shape[1]]
        for i in range(self.config.n_layers):
            block = f"layers.{i}"
            x = x + self.attention(self.norm(x, f"{block}.attention_residual.norm"), f"{block}.attention")
            h = self.norm(x, f"{block}.feed_forward_residual.norm")
            x = x + self.feed_forward(h, f"{block}.feed_forward")
        x = self.norm(x, "norm")
        tied = self.leaves["embedding.tokens.weight"].T
        return x @ (tied if self.config.tied else self.leaves["output.weight"])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_logits_and_gradients(options):
    model = GPT(GPTConfig(**(SIZES | options)), rng=np.random.default_rng(0), dtype=np.float64)
    model.values += 0.3 * np.random.default_rng(1).standard_normal(model.values.shape)
    oracle = Oracle(model)
    expected = oracle.logits(torch.tensor(IDS[:, :-1]))
    logits, cache = model.forward(IDS[:, :-1])
    np.testing.assert_allclose(logits, expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    loss, loss_cache = cross_entropy(logits, IDS[:, 1:])
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    torch_loss = functional.cross_entropy(expected.reshape(-1, 9), torch.tensor(IDS[:, 1:]).reshape(-1))
    torch_loss.backward()
    assert loss == pytest.approx(torch_loss.item(), rel=1e-12)
    for name, parameter in model.named_parameters():
        theirs = oracle.leaves[name].grad.numpy()
        assert np.abs(theirs).max() > 1e-4, name
        np.testing.assert_allclose(parameter.grad, theirs, rtol=1e-10, atol=1e-12, err_msg=name)
