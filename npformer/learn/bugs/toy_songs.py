"""A small language model of sentences that repeat their first tokens, for the specimens about positions."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.learn.bugs.toy_training import adapt, learn_tokens
from npformer.nn import Embedding, Linear
from npformer.nn.module import Module

STEPS, LR, LENGTH, VOCAB_SIZE, PERIOD = 200, 0.01, 9, 12, 3


class SongModel(Module):
    """A model with embeddings, one layer of attention with a residual connection, and logits.

    Args:
        attention: The class of the layer of attention, which takes its width and rng.
        rng: The generator of the initial values.
    """

    def __init__(self, attention: Any, rng: np.random.Generator) -> None:
        self.tokens = Embedding(VOCAB_SIZE, 16, rng=rng, dtype=np.float64)
        self.attention = attention(16, rng=rng)
        self.output = Linear(16, VOCAB_SIZE, rng=rng, dtype=np.float64)

    def forward(self, ids: Array, **settings: Any) -> tuple[Any, Any]:
        """Return (logits, cache). The settings go to the attention."""
        x, tokens = self.tokens.forward(ids)
        h, attended = self.attention.forward(x, **settings)
        y, output = self.output.forward(x + h)
        return y, (tokens, attended, output)

    def backward(self, dy: Array, cache: Any) -> None:
        """Add the gradients of the parameters."""
        tokens, attended, output = cache
        dx = self.output.backward(dy, output)
        self.tokens.backward(dx + self.attention.backward(dx, attended), tokens)

    def decode_step(self, ids: Array, kv_cache: Any) -> tuple[Any, Any]:
        """Return (logits, kv_cache) after one more token. Shapes: ids (B, 1) -> logits (B, 1, V)."""
        x, _ = self.tokens.forward(ids)
        h, kv_cache = self.attention.decode_step(x, kv_cache)
        return self.output.forward(x + h)[0], kv_cache


def songs(rng: np.random.Generator, batch: int) -> Any:
    """Return sentences in which a few tokens repeat periodically. Shapes: -> (B, LENGTH)."""
    first = rng.integers(0, VOCAB_SIZE, (batch, PERIOD))
    return np.tile(first, LENGTH // PERIOD)


def learn_songs(model: Any, rng: np.random.Generator) -> list[float]:
    """Train a model on continuing sentences, and return the loss of each step."""

    def step(_: int) -> float:
        ids = songs(rng, 16)
        return learn_tokens(model, ids[:, :-1], ids[:, 1:])

    return adapt(model, step, steps=STEPS, lr=LR)


def share_right(model: Any, ids: Array, word_by_word: bool = False, **settings: Any) -> float:
    """Return the percentage of right tokens in the model's continuation of the first PERIOD tokens.

    Args:
        model: The model.
        ids: The sentences, (B, LENGTH).
        word_by_word: True to decode with a KV cache, False to run the whole prefix at each step.
        settings: Keyword arguments of the model's forward.
    """
    written, kv_cache = ids[:, :PERIOD], None
    if word_by_word:
        for t in range(PERIOD - 1):
            _, kv_cache = model.decode_step(ids[:, t : t + 1], kv_cache)
    while written.shape[1] < LENGTH:
        if word_by_word:
            logits, kv_cache = model.decode_step(written[:, -1:], kv_cache)
        else:
            logits, _ = model.forward(written, **settings)
        written = np.concatenate([written, logits[:, -1:].argmax(-1)], 1)
    return 100 * float((written == ids)[:, PERIOD:].mean())
