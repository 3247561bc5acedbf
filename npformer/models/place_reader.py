"""A small task for soft and hard attention, and the model that learns it.

An example consists of several places, each with a name and a symbol. The query is one of the names. The model
predicts the symbol of the place with this name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.functional.softmax import log_softmax, log_softmax_backward
from npformer.nn.attention.hard import HardAttention
from npformer.nn.attention.luong import GlobalAttention
from npformer.nn.attention.similarity import Similarity
from npformer.nn.linear import Linear
from npformer.nn.module import Module

METHODS = ("soft", "hard", "hard, no baseline", "straight through")
PLACES, SYMBOLS = 6, 5  # the number S of places and names, and the number C of symbols


class Places(NamedTuple):
    """A batch of examples."""

    query: Any  # (B, 1, S) the name of one place, one-hot
    memory: Any  # (B, S, S + C) the name and the symbol of each place, one-hot and concatenated
    symbol: Any  # (B,) the symbol of the place with the name of the query


def make_places(n: int, rng: np.random.Generator, dtype: Any = np.float64) -> Places:
    """Make n examples with names in a random order, random symbols, and a random name as the query.

    Args:
        n: The number of examples.
        rng: The generator.
        dtype: The dtype of query and memory.

    Returns:
        A batch of n examples.
    """
    names = np.argsort(rng.random((n, PLACES)))  # (B, S)
    symbols = rng.integers(0, SYMBOLS, (n, PLACES))  # (B, S)
    place = rng.integers(0, PLACES, n)  # (B,) the index of the right place
    example = np.arange(n)
    query = np.eye(PLACES, dtype=dtype)[names[example, place]][:, None]
    memory = np.concatenate([np.eye(PLACES, dtype=dtype)[names], np.eye(SYMBOLS, dtype=dtype)[symbols]], -1)
    return Places(query, memory, symbols[example, place])


@cache_class
class ReaderCache(NamedTuple):
    """The cache of Reader."""

    attention: Any
    readout: LinearCache
    log_probs: Any  # ([N,] B, 1, C)


class Reader(Module):
    """The model log p(y) = log softmax(context weight + bias), where attention computes the context.

    Shapes: query (B, 1, S), memory (B, S, S + C) -> log p ([N,] B, 1, C).

    Args:
        method: One of METHODS: soft attention, or a way to learn hard attention.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If there is no such method.
    """

    def __init__(self, method: str, *, rng: np.random.Generator, dtype: Any = np.float64) -> None:
        if method not in METHODS:
            raise UserError(f"the method is {method!r}: choose one of {', '.join(METHODS)}")
        width = PLACES + SYMBOLS
        similarity = Similarity("general", PLACES, width, rng=rng, dtype=dtype)
        if method == "soft":
            self.attention: GlobalAttention | HardAttention = GlobalAttention(similarity)
        else:
            self.attention = HardAttention(similarity, straight_through=method == "straight through")
        self.readout = Linear(width, SYMBOLS, rng=rng, dtype=dtype)

    def forward(self, query: Array, memory: Array, **drawing: Any) -> Any:
        """Return the log-probabilities of the symbols, of shape ([N,] B, 1, C), and the cache.

        The keyword arguments are train, rng and draws of HardAttention.
        """
        context, attention_cache = self.attention.forward(query, memory, **drawing)
        logits, readout_cache = self.readout.forward(context)
        log_probs, _ = log_softmax(logits)
        return log_probs, ReaderCache(attention_cache, readout_cache, log_probs)

    def backward(self, dlog_probs: Array, cache: ReaderCache, **choices: Any) -> Any:
        """Return the gradients dquery (B, 1, S) and dmemory (B, S, S + C).

        The keyword arguments are dlog_prob and dentropy of HardAttention.
        """
        dlogits = log_softmax_backward(dlog_probs, cache.log_probs)
        dcontext = self.readout.backward(dlogits, cache.readout)
        return self.attention.backward(dcontext, cache.attention, **choices)
