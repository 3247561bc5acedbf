"""A specimen with a bug: a small language model in which each token attends to the last four tokens."""

from typing import Any, NamedTuple

import numpy as np

from npformer.nn import Embedding, Linear, MultiHeadAttention, RotaryPositions
from npformer.nn.module import Module


def may_attend(length, window):
    """Return the mask, (T, T) bool: a position may attend to the last `window` positions, with its own."""
    query, key = np.arange(length)[:, None], np.arange(length)  # (T, 1) and (T,)
    return (key <= query) & (key > query - window + 1)


class LanguageModelCache(NamedTuple):
    """The cache of LanguageModel."""

    tokens: Any
    attention: Any
    output: Any


class LanguageModel(Module):
    """logits[t] = the prediction of the token after token t, by one layer of attention with a window.

    Shapes: ids (B, T) -> logits (B, T, V).
    """

    def __init__(self, vocab_size=12, d_model=16, window=4, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.window = window
        rotary = RotaryPositions(64, d_model // 2, base=100.0, dtype=dtype)
        self.tokens = Embedding(vocab_size, d_model, rng=rng, dtype=dtype)
        self.attention = MultiHeadAttention(d_model, 2, rotary=rotary, rng=rng, dtype=dtype)
        self.output = Linear(d_model, vocab_size, rng=rng, dtype=dtype)

    def forward(self, ids):
        """Return (logits, cache)."""
        x, tokens = self.tokens.forward(ids)  # (B, T, D)
        h, attended = self.attention.forward(x, mask=may_attend(ids.shape[1], self.window))
        logits, output = self.output.forward(x + h)  # (B, T, V)
        return logits, LanguageModelCache(tokens, attended, output)

    def backward(self, dlogits, cache):
        """Add the gradients of the parameters; ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        # x + attention(x): both terms of a sum get its gradient
        self.tokens.backward(dx + self.attention.backward(dx, cache.attention), cache.tokens)
