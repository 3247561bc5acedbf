"""The recurrent encoder, and the bridge from its last words to the decoder's first state."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.functional.linear import LinearCache
from npformer.layers import BothWays, Linear, Recurrent
from npformer.layers.init import default_rng
from npformer.layers.recurrent import BothWaysCache, RecurrentCache
from npformer.module import Module


class RecurrentEncoder(Module):
    """memory_t: what was read up to word t, or from both sides up to it.

    Shapes: x (B, S, D), mask (B, S) bool -> memory (B, S, N).
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        width = config.d_hidden // 2 if config.both_ways else config.d_hidden
        reader = BothWays if config.both_ways else Recurrent
        self.reader = reader(config.d_model, width, kind=config.cell, rng=rng, dtype=dtype)
        self.both_ways, self.width = config.both_ways, width

    def forward(self, x, mask):
        """Returns (memory, cache)."""
        y, cache = self.reader.forward(x, mask=mask)
        return y[..., : self.width] if isinstance(self.reader, Recurrent) else y, cache

    def backward(self, dmemory, cache: BothWaysCache | RecurrentCache):
        """Returns dx."""
        if isinstance(self.reader, Recurrent):  # of an LSTM's state only h was shown
            xp, hidden = array_module(dmemory), self.reader.d_state - self.width
            dmemory = xp.concatenate([dmemory, xp.zeros((*dmemory.shape[:-1], hidden), dmemory.dtype)], -1)
        return self.reader.backward(dmemory, cache)


class BridgeCache(NamedTuple):
    """The cache of Bridge."""

    linear: LinearCache
    state: Any  # (B, M)
    shape: tuple  # of the memory


class Bridge(Module):
    """state = tanh(end W + b), with end the memory where reading ended: on the right, and on the left.

    Shapes: memory (B, S, N) -> state (B, M), with which the decoder begins.
    Source: Bahdanau et al. 2015, section A.2.2, which takes the left end alone.
    """

    def __init__(self, config, d_state, *, rng=None, dtype=np.float32):
        self.half = config.d_hidden // 2 if config.both_ways else config.d_hidden
        self.linear = Linear(config.d_hidden, d_state, rng=rng, dtype=dtype)

    def forward(self, memory):
        """Returns (state, cache). Padding held the state, so that the last place has the last word's."""
        xp = array_module(memory)
        end = xp.concatenate([memory[:, -1, : self.half], memory[:, 0, self.half :]], -1)  # (B, N)
        state, linear = self.linear.forward(end)
        state = xp.tanh(state)
        return state, BridgeCache(linear, state, memory.shape)

    def backward(self, dstate, cache):
        """Returns dmemory: 0 but at the two ends."""
        xp = array_module(dstate)
        # state = tanh(end W + b)
        dend = self.linear.backward(dstate * (1 - cache.state * cache.state), cache.linear)
        dmemory = xp.zeros(cache.shape, dend.dtype)
        dmemory[:, -1, : self.half] = dend[:, : self.half]
        dmemory[:, 0, self.half :] = dend[:, self.half :]
        return dmemory
