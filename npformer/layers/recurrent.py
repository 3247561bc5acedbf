"""LSTM and GRU over a sentence, with back-propagation through time written out."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.functional.linear import LinearCache
from npformer.functional.masking import check_words
from npformer.functional.recurrent import (
    GRUCache,
    LSTMCache,
    gru_cell,
    gru_cell_backward,
    hold,
    hold_backward,
    lstm_cell,
    lstm_cell_backward,
)
from npformer.layers.init import default_rng
from npformer.layers.linear import Linear
from npformer.module import Module

KINDS = {"lstm": (4, 2), "gru": (3, 1)}  # parts of the gates, and of the state: an LSTM's is h and c


class StepCache(NamedTuple):
    """The cache of one word."""

    recall: LinearCache
    cell: LSTMCache | GRUCache
    held: Any  # (B, 1) bool: is it a word? None without a mask


class RecurrentCache(NamedTuple):
    """The cache of Recurrent."""

    read: LinearCache
    steps: tuple  # of StepCache, in the order of reading
    given: bool  # whether the caller gave a state to begin with


class Recurrent(Module):
    """state_t = cell(x_t, state_{t-1}): a sentence read word by word, by an LSTM or a GRU.

    backwards=True reads from the last word to the first. Where the mask is False the state stays as it
    was, so that a padded sentence ends in the state of its last word, read from either side.
    Shapes: x (B, T, D), state (B, M), mask (B, T) bool -> states (B, T, M): after each word, in the order
    of the words. M is N for a GRU; for an LSTM 2N, the first N of them h, which others see, then c.
    Errors: UserError for a kind that is neither, or a mask of another shape or dtype.
    Source: Hochreiter and Schmidhuber 1997; Cho et al. 2014.
    """

    def __init__(self, d_in, d_hidden, *, kind="lstm", backwards=False, rng=None, dtype=np.float32):
        if kind not in KINDS:
            raise UserError(f"kind is {kind!r}: choose one of {', '.join(KINDS)}")
        rng = default_rng(rng)
        parts, states = KINDS[kind]
        self.kind, self.backwards, self.d_hidden = kind, backwards, d_hidden
        self.d_state = states * d_hidden
        self.read = Linear(d_in, parts * d_hidden, rng=rng, dtype=dtype)
        self.recall = Linear(d_hidden, parts * d_hidden, rng=rng, dtype=dtype)

    def forward(self, x, state=None, *, mask=None):
        """Without a state it begins with zeros. Returns (states, cache)."""
        check_words(mask, x)
        xp = array_module(x)
        gates, read = self.read.forward(x)  # (B, T, P·N) one product for all words
        given = state is not None
        state = xp.zeros((len(x), self.d_state), gates.dtype) if state is None else state  # (B, M)
        states, steps = [None] * x.shape[1], []
        for t in self._order(x.shape[1]):
            state, step = self.step(gates[:, t], state, None if mask is None else mask[:, t])
            states[t] = state
            steps.append(step)
        return xp.stack(states, 1), RecurrentCache(read, tuple(steps), given)

    def backward(self, dstates, cache):
        """Returns dx, or (dx, dstate) where a state was given."""
        xp = array_module(dstates)
        dgates = [None] * dstates.shape[1]
        dstate = 0  # nothing comes after the last word
        order = self._order(dstates.shape[1])
        for t, step in zip(order[::-1], cache.steps[::-1], strict=True):
            # a state is handed out, and on to the next word: two ways
            dgates[t], dstate = self.step_backward(dstate + dstates[:, t], step)
        dx = self.read.backward(xp.stack(dgates, 1), cache.read)
        return (dx, dstate) if cache.given else dx

    def step(self, gates, state, real=None):
        """One word. Shapes: gates (B, P·N), state (B, M), real (B,) bool. Returns (state, cache)."""
        n = self.d_hidden
        h = state[:, :n]  # (B, N)
        recalled, recall = self.recall.forward(h)  # (B, P·N)
        if self.kind == "lstm":
            after, cell = lstm_cell(gates + recalled, state[:, n:])  # (B, 2N)
        else:
            after, cell = gru_cell(gates, recalled, h)  # (B, N)
        if real is None:
            return after, StepCache(recall, cell, None)
        after, held = hold(after, state, real)
        return after, StepCache(recall, cell, held)

    def step_backward(self, dafter, cache):
        """Returns (dgates, dstate) of one word."""
        xp = array_module(dafter)
        dold = 0
        if cache.held is not None:
            dafter, dold = hold_backward(dafter, cache.held)
        if self.kind == "lstm":
            dgates, dc = lstm_cell_backward(dafter, cache.cell)
            # gates + recalled: both receive dgates
            dh = self.recall.backward(dgates, cache.recall)
            return dgates, xp.concatenate([dh, dc], -1) + dold
        dgates, drecalled, dh = gru_cell_backward(dafter, cache.cell)
        # h went into the cell, and through the product into `recalled`
        return dgates, dh + self.recall.backward(drecalled, cache.recall) + dold

    def _order(self, length):
        """The places of the words, in the order of reading."""
        return list(range(length))[:: -1 if self.backwards else 1]


class BothWaysCache(NamedTuple):
    """The cache of BothWays."""

    forwards: RecurrentCache
    backwards: RecurrentCache


class BothWays(Module):
    """y_t = [h→_t, h←_t]: a sentence read from both sides, so that each word knows what follows it too.

    Shapes: x (B, T, D), mask (B, T) bool -> y (B, T, 2N). Source: Schuster and Paliwal 1997.
    """

    def __init__(self, d_in, d_hidden, *, kind="lstm", rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.d_hidden = d_hidden
        self.forwards = Recurrent(d_in, d_hidden, kind=kind, rng=rng, dtype=dtype)
        self.backwards = Recurrent(d_in, d_hidden, kind=kind, backwards=True, rng=rng, dtype=dtype)

    def forward(self, x, *, mask=None):
        """Returns (y, cache)."""
        n, xp = self.d_hidden, array_module(x)
        one, forwards = self.forwards.forward(x, mask=mask)  # (B, T, M)
        other, backwards = self.backwards.forward(x, mask=mask)  # (B, T, M)
        return xp.concatenate([one[..., :n], other[..., :n]], -1), BothWaysCache(forwards, backwards)

    def backward(self, dy, cache):
        """Returns dx."""
        n = self.d_hidden
        # y = [h→, h←], and of c nothing was shown
        dx = self.forwards.backward(self._padded(dy[..., :n]), cache.forwards)
        # x was read twice
        return dx + self.backwards.backward(self._padded(dy[..., n:]), cache.backwards)

    def _padded(self, dh):
        """The gradient of a whole state of which h alone was shown. Shapes: (B, T, N) -> (B, T, M)."""
        xp, hidden = array_module(dh), self.forwards.d_state - self.d_hidden
        return xp.concatenate([dh, xp.zeros((*dh.shape[:-1], hidden), dh.dtype)], -1)
