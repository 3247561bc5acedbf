"""A specimen with a bug: a network that reads word by word."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import gru_cell, gru_cell_backward
from npformer.layers import Linear
from npformer.module import Module


class StepCache(NamedTuple):
    """The cache of one word."""

    recall: Any
    cell: Any
    real: Any  # (B, 1) is it a word?


class ReaderCache(NamedTuple):
    """The cache of Reader."""

    read: Any
    steps: tuple  # of StepCache, in the order of reading


class Reader(Module):
    """state_t = gru_cell(x_t, state_{t-1}): a sentence read word by word.

    At padding the state stays as it was, so that the last place has the state of the last word.
    Shapes: x (B, T, D), mask (B, T) bool, True at the words -> states (B, T, N).
    """

    def __init__(self, d_in=8, d_hidden=16, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.d_hidden = d_hidden
        self.read = Linear(d_in, 3 * d_hidden, rng=rng, dtype=dtype)
        self.recall = Linear(d_hidden, 3 * d_hidden, rng=rng, dtype=dtype)

    def forward(self, x, mask):
        """Returns (states, cache)."""
        gates, read = self.read.forward(x)  # (B, T, 3N) one product for all words
        state = np.zeros((len(x), self.d_hidden), gates.dtype)  # (B, N)
        states, steps = [], []
        for t in range(x.shape[1]):
            recalled, recall = self.recall.forward(state)  # (B, 3N)
            new, cell = gru_cell(gates[:, t], recalled, state)  # (B, N)
            real = mask[:, t, None]  # (B, 1)
            state = np.where(real, new, state)
            states.append(state)
            steps.append(StepCache(recall, cell, real))
        return np.stack(states, 1), ReaderCache(read, tuple(steps))

    def backward(self, dstates, cache):
        """Returns dx."""
        dgates = [0] * len(cache.steps)
        dstate = 0  # nothing comes after the last word
        for t, step in reversed(list(enumerate(cache.steps))):
            # a state is handed out, and on to the next word: two ways
            dstate = dstate + dstates[:, t]
            # state = where(real, new, ...): padding was not read, and gets no gradient
            dnew = np.where(step.real, dstate, 0)
            dgates[t], drecalled, dh = gru_cell_backward(dnew, step.cell)
            # the state before went into the cell, and through the product into recalled
            dstate = dh + self.recall.backward(drecalled, step.recall)
        return self.read.backward(np.stack(dgates, 1), cache.read)
