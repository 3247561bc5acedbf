"""The recurrent decoder: a word at a time, with attention before the cell, after it, or not at all."""

from typing import Any, NamedTuple

import numpy as np

from npformer.attention.luong import AttentionalState, GlobalAttention, LocalMonotonic, LocalPredictive
from npformer.attention.similarity import Similarity
from npformer.backend import array_module
from npformer.layers import Recurrent
from npformer.layers.init import default_rng
from npformer.layers.recurrent import RecurrentCache
from npformer.module import Module


class Carried(NamedTuple):
    """What one word hands on to the next."""

    state: Any  # (B, M) the cell's
    fed: Any  # (B, N) the attentional state, or None where nothing is fed


class StepCache(NamedTuple):
    """The cache of one word."""

    cell: RecurrentCache
    attention: Any  # None without attention
    readout: Any  # of AttentionalState, or None


class DecoderCache(NamedTuple):
    """The cache of RecurrentDecoder."""

    steps: tuple  # of StepCache, one a word

    @property
    def weights(self):
        """Where every word looked (B, T, S). Without attention there is nothing to show: None."""
        if self.steps[0].attention is None:
            return None
        weights = [step.attention.weights for step in self.steps]  # each (B, 1, S)
        return array_module(weights[0]).concatenate(weights, 1)


class RecurrentDecoder(Module):
    """y_t = tanh([c_t; h_t] W), with h_t from the cell and c_t from attention to the memory.

    attention "none":                  y_t = h_t
    "additive" (Bahdanau):             c_t by h_{t-1}, and the cell reads [x_t; c_t]
    "global", "local-m", "local-p":    c_t by h_t (Luong); with feeding the cell reads [x_t; y_{t-1}]

    Shapes: x (B, T, D), memory (B, S, N), mask (B, S) bool, state (B, M) -> y (B, T, N).
    Source: Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015, sections 3 and 3.3.
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        n = config.d_hidden
        self.d_hidden, self.early, self.feeding = n, config.attention == "additive", config.feeding
        extra = n if self.early or self.feeding else 0
        self.cell = Recurrent(config.d_model + extra, n, kind=config.cell, rng=rng, dtype=dtype)
        self.attention: Any = None
        self.readout: Any = None
        if config.attention != "none":
            self.attention = make_attention(config, rng, dtype)
            self.readout = AttentionalState(n, n, rng=rng, dtype=dtype)

    def forward(self, x, memory, mask, state):
        """Returns (y, cache)."""
        carried, steps, y = self.begin(state), [], []
        for t in range(x.shape[1]):
            y_t, carried, cache = self.step(x[:, t], carried, memory, mask, t)
            y.append(y_t)
            steps.append(cache)
        return array_module(x).stack(y, 1), DecoderCache(tuple(steps))

    def backward(self, dy, cache):
        """Returns (dx, dmemory, dstate)."""
        dx = [None] * len(cache.steps)
        dcarried, dmemory = Carried(0, 0), 0
        for t, step in reversed(list(enumerate(cache.steps))):
            dx[t], dcarried, dlooked = self.step_backward(dy[:, t], dcarried, step)
            dmemory = dmemory + dlooked  # every word looked at the same memory
        return array_module(dy).stack(dx, 1), dmemory, dcarried.state

    def begin(self, state):
        """What the first word is handed."""
        fed = array_module(state).zeros((len(state), self.d_hidden), state.dtype) if self.feeding else None
        return Carried(state, fed)

    def step(self, x, carried, memory, mask, t):
        """One word. Shapes: x (B, D) -> y (B, N). Returns (y, carried, cache)."""
        xp = array_module(x)
        looked = readout = context = None
        if self.early:
            context, looked = self._look(carried.state, memory, mask, t)  # (B, N)
            x = xp.concatenate([x, context], -1)
        elif self.feeding:
            x = xp.concatenate([x, carried.fed], -1)
        states, cell = self.cell.forward(x[:, None], carried.state)  # (B, 1, M)
        state = states[:, 0]
        y = state[:, : self.d_hidden]
        if self.attention is not None:
            if not self.early:
                context, looked = self._look(state, memory, mask, t)
            y, readout = self.readout.forward(context, y)
        return y, Carried(state, y if self.feeding else None), StepCache(cell, looked, readout)

    def step_backward(self, dy, dcarried, cache):
        """Returns (dx, dcarried, dmemory) of one word."""
        dmemory, dstate = 0, dcarried.state
        if self.feeding:  # y was read out, and fed to the next word
            dy = dy + dcarried.fed
        dh = dy
        if self.attention is not None:
            dcontext, dh = self.readout.backward(dy, cache.readout)
        dstate = dstate + self._padded(dh)
        if self.attention is not None and not self.early:
            dquery, dmemory = self._look_backward(dcontext, cache.attention)
            dstate = dstate + dquery
        dx, dbefore = self.cell.backward(dstate[:, None], cache.cell)
        dx, dfed = dx[:, 0], None
        if self.early:  # x = [x; context]
            dx, dmore = self._cut(dx)
            dquery, dmemory = self._look_backward(dcontext + dmore, cache.attention)
            dbefore = dbefore + dquery
        elif self.feeding:  # x = [x; y of the word before]
            dx, dfed = self._cut(dx)
        return dx, Carried(dbefore, dfed), dmemory

    def _look(self, state, memory, mask, t):
        """The context of a state's h. Shapes: state (B, M) -> (B, N)."""
        query = state[:, None, : self.d_hidden]  # (B, 1, N)
        context, cache = self.attention.forward(query, memory, mask, start=t)
        return context[:, 0], cache

    def _look_backward(self, dcontext, cache):
        """Returns (dstate, dmemory)."""
        dquery, dmemory = self.attention.backward(dcontext[:, None], cache)
        return self._padded(dquery[:, 0]), dmemory

    def _padded(self, dh):
        """The gradient of a state of which h alone was used. Shapes: (B, N) -> (B, M)."""
        xp, hidden = array_module(dh), self.cell.d_state - self.d_hidden
        return xp.concatenate([dh, xp.zeros((len(dh), hidden), dh.dtype)], -1)

    def _cut(self, dx):
        """The gradients of what was laid side by side. Shapes: (B, D + N) -> (B, D), (B, N)."""
        width = dx.shape[-1] - self.d_hidden
        return dx[:, :width], dx[:, width:]


def make_attention(config, rng, dtype):
    """The attention that a configuration names, between states of width d_hidden."""
    n, score = config.d_hidden, "perceptron" if config.attention == "additive" else config.score
    similarity = Similarity(score, n, n, rng=rng, dtype=dtype)
    if config.attention == "local-m":
        return LocalMonotonic(similarity, reach=config.window)
    if config.attention == "local-p":
        return LocalPredictive(similarity, reach=config.window, rng=rng, dtype=dtype)
    return GlobalAttention(similarity)
