"""A GPT in PyTorch, in its usual form. Only processes that measure it import this module."""

import math

import torch
from torch import nn
from torch.nn import functional

from npformer.models.gpt import INITIAL_STD, GPTConfig


class TorchGPT(nn.Module):
    """A GPT with the parts of GPT-2: layer norm, learned positions, GELU, tied embedding and output.

    Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration of the same model in npformer.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = nn.Embedding(config.context, config.d_model)
        self.blocks = nn.ModuleList(TorchBlock(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model, bias=config.bias)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                last = name.endswith(("joined.weight", "outer.weight"))
                std = INITIAL_STD / math.sqrt(2 * config.n_layers) if last else INITIAL_STD
                nn.init.normal_(parameter, std=std)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.output(self.norm(x))
        return logits


class TorchBlock(nn.Module):
    """A layer of TorchGPT. Shapes: x (B, T, D) -> y (B, T, D)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        d_model, bias = config.d_model, config.bias
        self.n_heads = config.n_heads
        self.approximate = "tanh" if config.activation == "gelu_tanh" else "none"
        self.attention_norm = nn.LayerNorm(d_model, bias=bias)
        self.query_key_value = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.joined = nn.Linear(d_model, d_model, bias=bias)
        self.feed_forward_norm = nn.LayerNorm(d_model, bias=bias)
        self.inner = nn.Linear(d_model, config.hidden_width, bias=bias)
        self.outer = nn.Linear(config.hidden_width, d_model, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return y."""
        x = x + self._attend(self.attention_norm(x))
        h = functional.gelu(self.inner(self.feed_forward_norm(x)), approximate=self.approximate)
        y: torch.Tensor = x + self.outer(h)
        return y

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.query_key_value(x).view(batch, length, 3, self.n_heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # (B, H, T, K) each
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y: torch.Tensor = self.joined(z.transpose(1, 2).reshape(batch, length, width))
        return y
