"""A specimen with a bug: a small language model."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn import InputEmbedding, LayerNorm, Linear
from npformer.nn.attention import MultiHeadAttention
from npformer.nn.module import Module


def may_attend(length):
    """Return the causal mask, (T, T) bool: a position may attend to itself and to all before it."""
    return np.tril(np.ones((length, length), bool), 1)


class LanguageModelCache(NamedTuple):
    """The cache of LanguageModel."""

    input: Any
    attention: Any
    norm: Any
    output: Any


class LanguageModel(Module):
    """logits[t] = the prediction of the token after tokens 0 .. t, by one layer of attention.

    Shapes: ids (B, T) -> logits (B, T, V).
    """

    def __init__(self, vocab_size=12, d_model=16, max_length=16, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.input = InputEmbedding(vocab_size, d_model, max_length, rng=rng, dtype=dtype)
        self.attention = MultiHeadAttention(d_model, 2, rng=rng, dtype=dtype)
        self.norm = LayerNorm(d_model, dtype=dtype)
        self.output = Linear(d_model, vocab_size, rng=rng, dtype=dtype)

    def forward(self, ids):
        """Return (logits, cache)."""
        x, entered = self.input.forward(ids)  # (B, T, D)
        h, attended = self.attention.forward(x, mask=may_attend(ids.shape[1]))
        x, norm = self.norm.forward(x + h)
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, LanguageModelCache(entered, attended, norm, output)

    def backward(self, dlogits, cache):
        """Add the gradients of the parameters; ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        dx = self.norm.backward(dx, cache.norm)
        # x + attention(x): both terms of a sum get its gradient
        self.input.backward(dx + self.attention.backward(dx, cache.attention), cache.input)
