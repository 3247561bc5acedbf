"""A specimen with a bug: an encoder of sentences of different lengths."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn import InputEmbedding, LayerNorm, Linear
from npformer.nn.attention import MultiHeadAttention
from npformer.nn.module import Module

PAD = 0  # its vector is all zeros, and stays so


class EncoderCache(NamedTuple):
    """The cache of Encoder."""

    input: Any
    attention: Any
    norm: Any
    output: Any


class Encoder(Module):
    """One layer of self-attention over embeddings and positions, then logits at each position.

    Shapes: ids (B, S), padded with PAD -> logits (B, S, V).
    """

    def __init__(self, vocab_size=12, d_model=16, max_length=40, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.input = InputEmbedding(vocab_size, d_model, max_length, zero_id=PAD, rng=rng, dtype=dtype)
        self.attention = MultiHeadAttention(d_model, 2, rng=rng, dtype=dtype)
        self.norm = LayerNorm(d_model, dtype=dtype)
        self.output = Linear(d_model, vocab_size, rng=rng, dtype=dtype)

    def forward(self, ids):
        """Return (logits, cache)."""
        x, entered = self.input.forward(ids)  # (B, S, D)
        mask = (np.abs(x.real).sum(-1) > 0)[:, None, None, :]  # (B, 1, 1, S): padding is zeros
        h, attended = self.attention.forward(x, mask=mask)
        x, norm = self.norm.forward(x + h)
        logits, output = self.output.forward(x)  # (B, S, V)
        return logits, EncoderCache(entered, attended, norm, output)

    def backward(self, dlogits, cache):
        """Add the gradients of the parameters; ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        dx = self.norm.backward(dx, cache.norm)
        # x + attention(x): both terms of a sum get its gradient
        self.input.backward(dx + self.attention.backward(dx, cache.attention), cache.input)
