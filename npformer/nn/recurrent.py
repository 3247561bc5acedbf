"""LSTM and GRU layers over a sentence, with explicit back-propagation through time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.functional.masks import check_token_mask
from npformer.functional.recurrent import (
    GRUCache,
    LSTMCache,
    gru_cell,
    gru_cell_backward,
    lstm_cell,
    lstm_cell_backward,
    masked_update,
    masked_update_backward,
)
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module
from npformer.validation import require_counts

# for each kind: the number P of gates, and the number of vectors in the state (an LSTM has h and c)
KINDS = {"lstm": (4, 2), "gru": (3, 1)}


@cache_class
class StepCache(NamedTuple):
    """The cache of one position."""

    hidden_projection: LinearCache
    cell: LSTMCache | GRUCache
    updated: Any  # (B, 1) bool: the cache of masked_update, True at a token; None without a mask


@cache_class
class RecurrentCache(NamedTuple):
    """The cache of Recurrent."""

    input_projection: LinearCache
    steps: tuple[StepCache, ...]  # one for each position, in the order of reading
    has_state: bool  # True if the caller gave an initial state


class Recurrent(Module):
    """A recurrent layer, an LSTM or a GRU: state_t = cell(x_t, state_{t-1}).

    Where the mask is False, the state does not change, so a padded sentence ends with the state of its last
    token. Shapes: x (B, T, D), state (B, M), mask (B, T) bool -> states (B, T, M), in the order of the
    positions. For a GRU, M = N. For an LSTM, M = 2N: the output h, followed by the cell state c.

    Args:
        d_in: The width D of the input.
        d_hidden: The width N of h.
        kind: "lstm" or "gru".
        backwards: Read from the last position to the first.
        forget_bias: The initial bias of the forget gate of an LSTM. With 0 the gate begins near 1/2, so the
            cell state is halved at each position. With 1 it begins near 0.73. A GRU has no such gate.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the kind is unknown, or if the mask has another shape or dtype.

    Source: Hochreiter and Schmidhuber 1997; Cho et al. 2014; Jozefowicz et al. 2015 (forget_bias).
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        *,
        kind: str = "lstm",
        backwards: bool = False,
        forget_bias: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        if kind not in KINDS:
            raise UserError(f"kind is {kind!r}: choose one of {', '.join(KINDS)}")
        require_counts(d_in=d_in, d_hidden=d_hidden)
        rng = default_rng(rng)
        parts, states = KINDS[kind]
        self.kind, self.backwards, self.d_hidden = kind, backwards, d_hidden
        self.d_state = states * d_hidden
        self.input_projection = Linear(d_in, parts * d_hidden, rng=rng, dtype=dtype)
        self.hidden_projection = Linear(d_hidden, parts * d_hidden, rng=rng, dtype=dtype)
        bias = self.input_projection.bias
        if kind == "lstm" and bias is not None:
            bias.value[d_hidden : 2 * d_hidden] = forget_bias  # the second gate is f

    def forward(self, x: Array, state: Array | None = None, *, mask: Array | None = None) -> Any:
        """Compute the states of all positions.

        Args:
            x: The input, of shape (B, T, D).
            state: The initial state, of shape (B, M). The default is 0.
            mask: Bool, of shape (B, T). True at tokens and False at padding. None if there is no padding.

        Returns:
            The states, of shape (B, T, M), and the cache.
        """
        check_floats(x, ("B", "T", self.input_projection.weight.shape[0]), "Recurrent")
        if state is not None:
            check_floats(state, (len(x), self.d_state), "Recurrent", "state")
        if x.shape[1] == 0:
            raise UserError(f"Recurrent needs at least one position and got x of shape {x.shape}")
        check_token_mask(mask, x)
        xp = array_module(x)
        # one product for all positions
        gates, input_projection_cache = self.input_projection.forward(x)  # (B, T, P·N)
        has_state = state is not None
        state = xp.zeros((len(x), self.d_state), gates.dtype) if state is None else state  # (B, M)
        states: list[Any] = [None] * x.shape[1]
        steps = []
        for t in self._order(x.shape[1]):
            state, step = self.time_step(gates[:, t], state, None if mask is None else mask[:, t])
            states[t] = state
            steps.append(step)
        return xp.stack(states, 1), RecurrentCache(input_projection_cache, tuple(steps), has_state)

    def backward(self, dstates: Array, cache: RecurrentCache) -> Any:
        """Return dx, of shape (B, T, D), or (dx, dstate) with dstate (B, M) if a state was given."""
        check_gradient(dstates, (*cache.input_projection.x.shape[:-1], self.d_state), "Recurrent")
        xp = array_module(dstates)
        dgates: list[Any] = [None] * dstates.shape[1]
        dstate: Any = 0  # no position uses the last state
        order = self._order(dstates.shape[1])
        for t, step in zip(order[::-1], cache.steps[::-1], strict=True):
            # a state is an output and an input of the next position, so its two gradients are added
            dgates[t], dstate = self.time_step_backward(dstate + dstates[:, t], step)
        # gates = input_projection(x)
        dx = self.input_projection.backward(xp.stack(dgates, 1), cache.input_projection)
        return (dx, dstate) if cache.has_state else dx

    def time_step(self, gates: Array, state: Array, is_token: Array | None = None) -> tuple[Array, StepCache]:
        """Compute the state of one position from the state of the position before.

        Args:
            gates: The input projection of this position, of shape (B, P·N).
            state: The state before this position, of shape (B, M).
            is_token: Bool, of shape (B,). False at padding, where the state does not change. None for all
                True.

        Returns:
            The state, of shape (B, M), and the cache.
        """
        n = self.d_hidden
        cell_cache: Any
        h = state[:, :n]  # (B, N)
        hidden_gates, hidden_projection_cache = self.hidden_projection.forward(h)  # (B, P·N)
        if self.kind == "lstm":
            after, cell_cache = lstm_cell(gates + hidden_gates, state[:, n:])  # (B, 2N)
        else:
            after, cell_cache = gru_cell(gates, hidden_gates, h)  # (B, N)
        if is_token is None:
            return after, StepCache(hidden_projection_cache, cell_cache, None)
        after, updated = masked_update(after, state, is_token)
        return after, StepCache(hidden_projection_cache, cell_cache, updated)

    def time_step_backward(self, dafter: Array, cache: StepCache) -> tuple[Array, Array]:
        """Return dgates (B, P·N) and dstate (B, M). `dafter` (B, M) is the gradient of the new state."""
        xp = array_module(dafter)
        dold: Any = 0
        if cache.updated is not None:
            dafter, dold = masked_update_backward(dafter, cache.updated)
        if isinstance(cache.cell, LSTMCache):
            dgates, dc = lstm_cell_backward(dafter, cache.cell)
            # the input of the cell is gates + hidden_gates, so dgates is the gradient of both
            dh = self.hidden_projection.backward(dgates, cache.hidden_projection)
            return dgates, xp.concatenate([dh, dc], -1) + dold
        dgates, dhidden_gates, dh = gru_cell_backward(dafter, cache.cell)
        # h is an input of the cell and of hidden_projection, so its two gradients are added
        return dgates, dh + self.hidden_projection.backward(dhidden_gates, cache.hidden_projection) + dold

    def _order(self, length: int) -> list[int]:
        """Return the positions in the order of reading."""
        return list(range(length))[:: -1 if self.backwards else 1]


@cache_class
class BidirectionalCache(NamedTuple):
    """The cache of Bidirectional."""

    forwards: RecurrentCache
    backwards: RecurrentCache


class Bidirectional(Module):
    """Two recurrent layers in opposite directions: y_t = [h→_t, h←_t].

    Shapes: x (B, T, D), mask (B, T) bool -> y (B, T, 2N).

    Args:
        d_in: The width D of the input.
        d_hidden: The width N of each direction.
        kind: "lstm" or "gru".
        forget_bias: The initial bias of the forget gate of an LSTM.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Schuster and Paliwal 1997.
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        *,
        kind: str = "lstm",
        forget_bias: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.d_hidden = d_hidden
        settings: dict[str, Any] = {"kind": kind, "forget_bias": forget_bias, "dtype": dtype}
        rng = default_rng(rng)
        self.forwards = Recurrent(d_in, d_hidden, **settings, rng=rng)
        self.backwards = Recurrent(d_in, d_hidden, **settings, backwards=True, rng=rng)

    def forward(self, x: Array, *, mask: Array | None = None) -> tuple[Array, BidirectionalCache]:
        """Return y, of shape (B, T, 2N), and the cache."""
        n, xp = self.d_hidden, array_module(x)
        right, forwards_cache = self.forwards.forward(x, mask=mask)  # (B, T, M)
        left, backwards_cache = self.backwards.forward(x, mask=mask)  # (B, T, M)
        return xp.concatenate([right[..., :n], left[..., :n]], -1), BidirectionalCache(
            forwards_cache, backwards_cache
        )

    def backward(self, dy: Array, cache: BidirectionalCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        x = cache.forwards.input_projection.x  # (B, T, D)
        check_gradient(dy, (*x.shape[:-1], 2 * self.d_hidden), "Bidirectional")
        n = self.d_hidden
        # y = [h→, h←]; the c of an LSTM is not part of y, so its gradient is 0
        dx = self.forwards.backward(self._padded(dy[..., :n]), cache.forwards)
        # both directions read x, so their gradients are added
        return dx + self.backwards.backward(self._padded(dy[..., n:]), cache.backwards)

    def _padded(self, dh: Array) -> Array:
        """Return the gradient of states of which only h was used. Shapes: (B, T, N) -> (B, T, M)."""
        xp, hidden = array_module(dh), self.forwards.d_state - self.d_hidden
        return xp.concatenate([dh, xp.zeros((*dh.shape[:-1], hidden), dh.dtype)], -1)
