"""A specimen with a bug: a small translator."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional.masks import causal_mask
from npformer.nn import InputEmbedding, LayerNorm, Linear
from npformer.nn.attention import MultiHeadAttention
from npformer.nn.module import Module


class TranslatorCache(NamedTuple):
    """The cache of Translator."""

    source: Any
    target: Any
    own: Any
    own_norm: Any
    cross: Any
    cross_norm: Any
    output: Any


class Translator(Module):
    """One decoder layer over the source's embedding: self-attention, cross-attention, logits.

    Shapes: source (B, S), target_in (B, T) -> logits (B, T, V).
    """

    def __init__(self, vocab_size=12, d_model=16, max_length=16, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.source = InputEmbedding(vocab_size, d_model, max_length, rng=rng, dtype=dtype)
        self.target = InputEmbedding(vocab_size, d_model, max_length, rng=rng, dtype=dtype)
        self.own = MultiHeadAttention(d_model, 2, rng=rng, dtype=dtype)
        self.own_norm = LayerNorm(d_model, dtype=dtype)
        self.cross = MultiHeadAttention(d_model, 2, rng=rng, dtype=dtype)
        self.cross_norm = LayerNorm(d_model, dtype=dtype)
        self.output = Linear(d_model, vocab_size, rng=rng, dtype=dtype)

    def forward(self, source, target_in):
        """Return (logits, cache)."""
        memory, from_source = self.source.forward(source)  # (B, S, D)
        x, from_target = self.target.forward(target_in)  # (B, T, D)
        # self-attention to the token itself and to the tokens before it
        h, own = self.own.forward(x, mask=causal_mask(target_in.shape[1], x))
        x, own_norm = self.own_norm.forward(x + h)
        # cross-attention to the source
        h, cross = self.cross.forward(memory, x)
        x, cross_norm = self.cross_norm.forward(x + h)
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, TranslatorCache(from_source, from_target, own, own_norm, cross, cross_norm, output)

    def backward(self, dlogits, cache):
        """Add the gradients of the parameters; ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        # x + cross-attention
        dx = self.cross_norm.backward(dx, cache.cross_norm)
        dmemory, dx_here = self.cross.backward(dx, cache.cross)
        # x + self-attention
        dx = self.own_norm.backward(dx + dx_here, cache.own_norm)
        dx = dx + self.own.backward(dx, cache.own)
        self.target.backward(dx, cache.target)
        self.source.backward(dmemory, cache.source)
