"""The recurrent decoder: with attention before or after the recurrent cell, or without attention."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.models.recurrent.config import RecurrentConfig
from npformer.nn import Recurrent
from npformer.nn.attention.luong import (
    AttentionalState,
    GlobalAttention,
    GlobalAttentionCache,
    LocalMonotonic,
    LocalPredictive,
    LocalPredictiveCache,
)
from npformer.nn.attention.similarity import Similarity
from npformer.nn.init import default_rng
from npformer.nn.module import Module
from npformer.nn.recurrent import RecurrentCache

AnyAttentionCache = GlobalAttentionCache | LocalPredictiveCache


class Carried(NamedTuple):
    """The state that the decoder passes from one position to the next."""

    state: Any  # (B, M) the state of the cell
    fed: Any  # (B, N) the attentional state y of this position, or None without input feeding


@cache_class
class StepCache(NamedTuple):
    """The cache of one position."""

    cell: RecurrentCache
    attention: Any  # an AnyAttentionCache, or None without attention
    readout: Any  # an AttentionalStateCache, or None


@cache_class
class DecoderCache(NamedTuple):
    """The cache of RecurrentDecoder."""

    steps: tuple[StepCache, ...]  # one for each position

    @property
    def weights(self) -> Array | None:
        """The attention weights (B, T, S), or None without attention."""
        if self.steps[0].attention is None:
            return None
        weights = [step.attention.weights for step in self.steps]  # each (B, 1, S)
        return array_module(weights[0]).concatenate(weights, 1)


class RecurrentDecoder(Module):
    """A recurrent decoder: y_t = tanh([c_t; h_t] W), where the cell computes h_t and attention computes c_t.

    The query of attention and the input of the cell depend on the setting `attention` of the configuration:

        "none"                           there is no attention, and y_t = h_t
        "additive" (Bahdanau)            the query is h_{t-1}, and the input of the cell is [x_t; c_t]
        "global", "local-m", "local-p"   the query is h_t (Luong), and the input of the cell is x_t or, with
                                         input feeding, [x_t; y_{t-1}]

    Shapes: x (B, T, D), memory (B, S, N), mask (B, S) bool, state (B, M) -> y (B, T, N).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015, sections 3 and 3.3.
    """

    def __init__(
        self, config: RecurrentConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        n = config.d_hidden
        self.d_hidden, self.early, self.feeding = n, config.attention == "additive", config.feeding
        extra = n if self.early or self.feeding else 0
        settings: dict[str, Any] = {"kind": config.cell, "forget_bias": config.forget_bias, "dtype": dtype}
        self.cell = Recurrent(config.d_model + extra, n, **settings, rng=rng)
        self.attention: Any = None
        self.readout: Any = None
        if config.attention != "none":
            self.attention = make_attention(config, rng, dtype)
            self.readout = AttentionalState(n, n, rng=rng, dtype=dtype)

    def forward(self, x: Array, memory: Array, mask: Array, state: Array) -> tuple[Array, DecoderCache]:
        """Compute all positions, one after another.

        Args:
            x: The token vectors, of shape (B, T, D).
            memory: The encoder's output, of shape (B, S, N).
            mask: Bool, of shape (B, S). True at the tokens of the source.
            state: The initial state of the cell, of shape (B, M).

        Returns:
            y, of shape (B, T, N), and the cache.
        """
        carried, steps, y = self.begin(state), [], []
        for t in range(x.shape[1]):
            y_t, carried, cache = self.decode_step(x[:, t], carried, memory, mask, t)
            y.append(y_t)
            steps.append(cache)
        return array_module(x).stack(y, 1), DecoderCache(tuple(steps))

    def backward(self, dy: Any, cache: DecoderCache) -> tuple[Array, Array, Array]:
        """Return the gradients dx (B, T, D), dmemory (B, S, N) and dstate (B, M)."""
        dx: list[Any] = [None] * len(cache.steps)
        dcarried = Carried(0, 0)
        dmemory: Any = 0
        for t, step in reversed(list(enumerate(cache.steps))):
            dx[t], dcarried, dmemory_here = self.decode_step_backward(dy[:, t], dcarried, step)
            dmemory = dmemory + dmemory_here  # every position attended to the same memory
        return array_module(dy).stack(dx, 1), dmemory, dcarried.state

    def begin(self, state: Array) -> Carried:
        """Return the state of the decoder before the first position. Shapes: state (B, M)."""
        fed = array_module(state).zeros((len(state), self.d_hidden), state.dtype) if self.feeding else None
        return Carried(state, fed)

    def decode_step(
        self, x: Array, carried: Carried, memory: Array, mask: Array, t: int
    ) -> tuple[Array, Carried, StepCache]:
        """Compute one position.

        Args:
            x: The token vector, of shape (B, D).
            carried: The state of the decoder before this position.
            memory: The encoder's output, of shape (B, S, N).
            mask: Bool, of shape (B, S). True at the tokens of the source.
            t: The position.

        Returns:
            y, of shape (B, N), the state after this position, and the cache.
        """
        xp = array_module(x)
        attention_cache = readout_cache = context = None
        if self.early:
            context, attention_cache = self._attend(carried.state, memory, mask, t)  # (B, N)
            x = xp.concatenate([x, context], -1)
        elif self.feeding:
            x = xp.concatenate([x, carried.fed], -1)
        states, cell_cache = self.cell.forward(x[:, None], carried.state)  # (B, 1, M)
        state = states[:, 0]
        y = state[:, : self.d_hidden]
        if self.attention is not None:
            if not self.early:
                context, attention_cache = self._attend(state, memory, mask, t)
            y, readout_cache = self.readout.forward(context, y)
        return (
            y,
            Carried(state, y if self.feeding else None),
            StepCache(cell_cache, attention_cache, readout_cache),
        )

    def decode_step_backward(self, dy: Any, dcarried: Carried, cache: StepCache) -> tuple[Any, Carried, Any]:
        """Compute the gradients of one position.

        Args:
            dy: The gradient of y, of shape (B, N).
            dcarried: The gradient of the state after this position.
            cache: The StepCache of this position.

        Returns:
            dx, of shape (B, D), the gradient of the state before this position, and dmemory, of shape
            (B, S, N).
        """
        dmemory: Any = 0
        dstate = dcarried.state
        if self.feeding:  # y is an output and an input of the next position, so its two gradients are added
            dy = dy + dcarried.fed
        dh = dy
        if self.attention is not None:
            dcontext, dh = self.readout.backward(dy, cache.readout)
        dstate = dstate + self._padded(dh)
        if self.attention is not None and not self.early:
            dquery, dmemory = self._attend_backward(dcontext, cache.attention)
            dstate = dstate + dquery
        dx, dstate_before = self.cell.backward(dstate[:, None], cache.cell)
        dx, dfed = dx[:, 0], None
        if self.early:  # the input of the cell is [x; context], and the readout uses the context too
            dx, dcontext_cell = self._split(dx)
            dquery, dmemory = self._attend_backward(dcontext + dcontext_cell, cache.attention)
            dstate_before = dstate_before + dquery
        elif self.feeding:  # the input of the cell is [x; y of the position before]
            dx, dfed = self._split(dx)
        return dx, Carried(dstate_before, dfed), dmemory

    def _attend(self, state: Array, memory: Array, mask: Array, t: int) -> tuple[Array, Any]:
        """Compute the context of the query h of a state. Shapes: state (B, M) -> (B, N), and the cache."""
        query = state[:, None, : self.d_hidden]  # (B, 1, N)
        context, cache = self.attention.forward(query, memory, mask, start=t)
        return context[:, 0], cache

    def _attend_backward(self, dcontext: Array, cache: AnyAttentionCache) -> tuple[Array, Array]:
        """Return the gradients dstate (B, M) and dmemory (B, S, N)."""
        dquery, dmemory = self.attention.backward(dcontext[:, None], cache)
        return self._padded(dquery[:, 0]), dmemory

    def _padded(self, dh: Any) -> Array:
        """Return the gradient of a state from the gradient of its h. Shapes: (B, N) -> (B, M)."""
        xp, hidden = array_module(dh), self.cell.d_state - self.d_hidden
        return xp.concatenate([dh, xp.zeros((len(dh), hidden), dh.dtype)], -1)

    def _split(self, dx: Array) -> tuple[Array, Array]:
        """Split the gradient of two concatenated arrays. Shapes: (B, D + N) -> (B, D), (B, N)."""
        width = dx.shape[-1] - self.d_hidden
        return dx[:, :width], dx[:, width:]


def make_attention(
    config: RecurrentConfig, rng: np.random.Generator | None, dtype: Any
) -> GlobalAttention | LocalPredictive:
    """Return the attention layer of a configuration.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    n, score = config.d_hidden, "perceptron" if config.attention == "additive" else config.score
    similarity = Similarity(score, n, n, rng=rng, dtype=dtype)
    if config.attention == "local-m":
        return LocalMonotonic(similarity, reach=config.window)
    if config.attention == "local-p":
        return LocalPredictive(similarity, reach=config.window, rng=rng, dtype=dtype)
    return GlobalAttention(similarity)
