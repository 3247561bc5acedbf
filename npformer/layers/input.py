"""InputEmbedding: what enters a stack, words and positions together."""

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.functional.embedding import EmbeddingCache
from npformer.layers.dropout import Dropout
from npformer.layers.embedding import Embedding
from npformer.layers.init import default_rng
from npformer.layers.positions import FixedPositions, LearnedPositions
from npformer.module import Module
from npformer.positions import LAYOUTS


class InputCache(NamedTuple):
    """The cache of InputEmbedding."""

    words: EmbeddingCache
    positions: Any
    keep: Any  # (B, T, D) what dropout kept, or None
    y: Any  # (B, T, D) what the stack receives


class InputEmbedding(Module):
    """y = dropout(sqrt(D) words[ids] + positions): what enters a stack of layers.

    positions is "interleaved", "halves", "jianshu" (sinusoids) or "learned"; with "relative" or "none"
    nothing is added.
    Shapes: ids (B, T) -> y (B, T, D). Source: Vaswani et al. 2017, sections 3.4, 3.5 and 5.4.
    """

    def __init__(
        self,
        n_words,
        d_model,
        max_length,
        *,
        positions="interleaved",
        scale=True,
        zero_id=None,
        rate=0.0,
        rng=None,
        dtype=np.float32,
    ):
        rng = default_rng(rng)
        factor = math.sqrt(d_model) if scale else 1.0
        self.words = Embedding(n_words, d_model, scale=factor, zero_id=zero_id, rng=rng, dtype=dtype)
        self.positions: FixedPositions | LearnedPositions | None = None
        if positions in LAYOUTS:
            self.positions = FixedPositions(max_length, d_model, layout=positions, dtype=dtype)
        elif positions == "learned":
            self.positions = LearnedPositions(max_length, d_model, rng=rng, dtype=dtype)
        self.dropout = Dropout(rate)

    def forward(self, ids, *, start=0, train=False, rng=None):
        """The first id stands at position `start`. Returns (y, cache)."""
        x, words = self.words.forward(ids)  # (B, T, D)
        positions = None
        if self.positions is not None:
            p, positions = self.positions.forward(ids.shape[1], start)  # (T, D)
            x = x + p
        y, keep = self.dropout.forward(x, train=train, rng=rng)
        return y, InputCache(words, positions, keep, y)

    def backward(self, dy, cache):
        """Returns nothing: ids have no gradient."""
        # y = dropout(x)
        dx = self.dropout.backward(dy, cache.keep)
        # x = words + positions: both receive the whole gradient
        if self.positions is not None:
            self.positions.backward(dx, cache.positions)
        self.words.backward(dx, cache.words)
