"""A specimen with a bug: a recurrent network."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional import gru_cell, gru_cell_backward
from npformer.nn import Linear
from npformer.nn.module import Module


class StepCache(NamedTuple):
    """The cache of one time step."""

    hidden_projection: Any
    cell: Any
    real: Any  # (B, 1) True at tokens, False at padding


class ReaderCache(NamedTuple):
    """The cache of Reader."""

    input_projection: Any
    steps: tuple  # of StepCache, in the order of the time steps


class Reader(Module):
    """state_t = gru_cell(x_t, state_{t-1}): a sentence is read token by token.

    At padding the state does not change, so that the last position has the state of the last token.
    Shapes: x (B, T, D), mask (B, T) bool, True at the tokens -> states (B, T, N).
    """

    def __init__(self, d_in=8, d_hidden=16, *, rng=None, dtype=np.float64):
        rng = np.random.default_rng(0) if rng is None else rng
        self.d_hidden = d_hidden
        self.input_projection = Linear(d_in, 3 * d_hidden, rng=rng, dtype=dtype)
        self.hidden_projection = Linear(d_hidden, 3 * d_hidden, rng=rng, dtype=dtype)

    def forward(self, x, mask):
        """Return (states, cache)."""
        gates, input_projection = self.input_projection.forward(x)  # (B, T, 3N) one product for all tokens
        state = np.zeros((len(x), self.d_hidden), gates.dtype)  # (B, N)
        states, steps = [], []
        for t in range(x.shape[1]):
            hidden_gates, hidden_projection = self.hidden_projection.forward(state)  # (B, 3N)
            new, cell = gru_cell(gates[:, t], hidden_gates, state)  # (B, N)
            real = mask[:, t, None]  # (B, 1)
            state = np.where(real, new, state)
            states.append(state)
            steps.append(StepCache(hidden_projection, cell, real))
        return np.stack(states, 1), ReaderCache(input_projection, tuple(steps))

    def backward(self, dstates, cache):
        """Return dx."""
        dgates = [0] * len(cache.steps)
        dstate: Any = 0  # no time step follows the last token
        for t, step in reversed(list(enumerate(cache.steps))):
            # a state is an output and is read by the next time step, so it has two gradients
            dstate = dstate + dstates[:, t]
            # state = where(real, new, ...): padding is not read, so it gets no gradient
            dnew = np.where(step.real, dstate, 0)
            dgates[t], dhidden_gates, dh = gru_cell_backward(dnew, step.cell)
            # the state before is an input of the cell and of hidden_projection
            dstate = dh + self.hidden_projection.backward(dhidden_gates, step.hidden_projection)
        return self.input_projection.backward(np.stack(dgates, 1), cache.input_projection)
