"""The recurrent encoder, and the bridge from its final states to the initial state of the decoder."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.models.recurrent.config import RecurrentConfig
from npformer.nn import Bidirectional, Linear, Recurrent
from npformer.nn.module import Module
from npformer.nn.recurrent import BidirectionalCache, RecurrentCache


class RecurrentEncoder(Module):
    """A recurrent encoder: memory_t is the output h of one or two recurrent layers at position t.

    Shapes: x (B, S, D), mask (B, S) bool -> memory (B, S, N).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, config: RecurrentConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        width = config.d_hidden // 2 if config.bidirectional else config.d_hidden
        reader: Any = Bidirectional if config.bidirectional else Recurrent
        settings: dict[str, Any] = {"kind": config.cell, "forget_bias": config.forget_bias, "dtype": dtype}
        self.reader = reader(config.d_model, width, **settings, rng=rng)
        self.width = width

    def forward(self, x: Array, mask: Array) -> tuple[Array, BidirectionalCache | RecurrentCache]:
        """Return the memory, of shape (B, S, N), and the cache."""
        y, cache = self.reader.forward(x, mask=mask)
        return y[..., : self.width] if isinstance(self.reader, Recurrent) else y, cache

    def backward(self, dmemory: Array, cache: BidirectionalCache | RecurrentCache) -> Array:
        """Return dx, of shape (B, S, D)."""
        if isinstance(self.reader, Recurrent):  # the memory is the h of the states, so the gradient of c is 0
            xp, hidden = array_module(dmemory), self.reader.d_state - self.width
            dmemory = xp.concatenate([dmemory, xp.zeros((*dmemory.shape[:-1], hidden), dmemory.dtype)], -1)
        return self.reader.backward(dmemory, cache)


@cache_class
class BridgeCache(NamedTuple):
    """The cache of Bridge."""

    linear: LinearCache
    state: Any  # (B, M)
    shape: tuple[Any, ...]  # the shape of the memory


class Bridge(Module):
    """The map from the final states of the encoder to the initial state of the decoder.

        state = tanh(end W + b)

    `end` is the final h of the forward direction (at the last position), followed by the final h of the
    backward direction (at position 0). Shapes: memory (B, S, N) -> state (B, M).

    Args:
        config: The configuration.
        d_state: The width M of the state of the decoder.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Bahdanau et al. 2015, section A.2.2, where only the backward direction is used.
    """

    def __init__(
        self,
        config: RecurrentConfig,
        d_state: int,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.half = config.d_hidden // 2 if config.bidirectional else config.d_hidden
        self.linear = Linear(config.d_hidden, d_state, rng=rng, dtype=dtype)

    def forward(self, memory: Array) -> tuple[Array, BridgeCache]:
        """Return the state, of shape (B, M), and the cache."""
        xp = array_module(memory)
        # padding does not change a state, so memory[:, -1] is the state after the last token
        end = xp.concatenate([memory[:, -1, : self.half], memory[:, 0, self.half :]], -1)  # (B, N)
        state, linear_cache = self.linear.forward(end)
        state = xp.tanh(state)
        return state, BridgeCache(linear_cache, state, memory.shape)

    def backward(self, dstate: Array, cache: BridgeCache) -> Array:
        """Return dmemory, of shape (B, S, N), which is 0 except at the first and the last position."""
        xp = array_module(dstate)
        # state = tanh(end W + b)
        dend = self.linear.backward(dstate * (1 - cache.state * cache.state), cache.linear)
        dmemory = xp.zeros(cache.shape, dend.dtype)
        dmemory[:, -1, : self.half] = dend[:, : self.half]
        dmemory[:, 0, self.half :] = dend[:, self.half :]
        return dmemory
