"""The Universal Transformer: one layer again and again, as often as each word needs. Dehghani et al. 2019."""

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.functional.activations import sigmoid, sigmoid_backward
from npformer.functional.halting import MixCache, mix_states, mix_states_backward
from npformer.functional.linear import LinearCache
from npformer.functional.masking import check_words
from npformer.functional.norm import LayerNormCache
from npformer.functional.recurrent import hold, hold_backward
from npformer.layers import FixedPositions, Linear
from npformer.layers.init import default_rng
from npformer.module import Module
from npformer.positions import LAYOUTS
from npformer.settings import is_number
from npformer.transformer.layers import DecoderLayer, DecoderLayerCache, EncoderLayer, EncoderLayerCache
from npformer.transformer.stacks import make_final_norm


class HaltCache(NamedTuple):
    """What one step's halting needs."""

    held: Any  # (B, T, 1) bool: the position still ran, and has a new state
    unit: LinearCache
    p: Any  # (B, T, 1) the probability to stop here


class StepCache(NamedTuple):
    """The cache of one step."""

    layer: EncoderLayerCache | DecoderLayerCache | None  # None where decoding keeps none
    halt: HaltCache | None  # None without halting


class UniversalCache(NamedTuple):
    """The cache of UniversalEncoder and UniversalDecoder."""

    steps: tuple  # of StepCache, until no position ran any more
    mix: MixCache | None  # None without halting
    norm: LayerNormCache | None

    @property
    def layers(self):
        """The layer's cache at each step, as those of a stack of layers."""
        return tuple(step.layer for step in self.steps)

    @property
    def ponder(self):
        """What thinking cost each position, (B, T): its steps and what remained; None without halting."""
        return None if self.mix is None else self.mix.ponder


class Universal(Module):
    """What encoder and decoder have in common: the layer, the signals, the halting.

    Before step n the state gets two vectors of sinusoids, one for the position and one for n = 1, 2 ..; with
    config.positions "none" it gets neither. config.n_layers is the number of steps.
    halting: a position stops after the first step n where Σ p ≥ 1 - epsilon, or after n_layers steps, with
    p_n = sigmoid(w · s_n + b). From then on its state stays as it was, for others to look at; y mixes its
    states by their weights (see mix_states). halting_bias is the first b: the higher, the sooner it stops.
    So far Graves 2016 and the paper's text; the code in its appendix takes p from the state before the step,
    changes halted states further, and blends each new state into the mixture so far.
    Errors: UserError for positions that are no sinusoids, or an epsilon outside (0, 1).
    """

    def __init__(
        self, kind, config, *, halting=False, epsilon=0.01, halting_bias=1.0, rng=None, dtype=np.float32
    ):
        _check(config, epsilon, halting_bias)
        rng = default_rng(rng)
        self.n_steps, self.epsilon = config.n_layers, epsilon
        self.layer = kind(config, rng=rng, dtype=dtype)
        self.positions: FixedPositions | None = None
        if config.positions != "none":
            layout = {"layout": config.positions, "dtype": dtype}
            self.positions = FixedPositions(config.max_length, config.d_model, **layout)
            self.times = FixedPositions(config.n_layers + 1, config.d_model, **layout)  # 0 is no step
        self.halting: Any = None
        if halting:
            self.halting = Linear(config.d_model, 1, rng=rng, dtype=dtype)
            self.halting.bias.value[...] = halting_bias
        self.norm = make_final_norm(config, dtype)

    def _repeat(self, x, *others, words=None, **settings):
        """The layer n_steps times, or until no position runs. Returns (y, cache)."""
        check_words(words, x)
        steps: list[StepCache] = []
        all_run = words is None or self.halting is None
        running = array_module(x).ones(x.shape[:2], bool) if all_run else words  # (B, T)
        for n in range(1, self.n_steps + 1):
            new, layer = self.layer.forward(self._signalled(x, n), *others, **settings)
            x, halt, running = self._halt(new, x, running, steps)
            steps.append(StepCache(layer, halt))
            if not running.any():
                break
        y, mix = self._mix(x, steps)
        y, norm = (y, None) if self.norm is None else self.norm.forward(y)
        return y, UniversalCache(tuple(steps), mix, norm)

    def backward(self, dy, cache, *, dponder=None):
        """Returns dx, or (dx, dmemory); dponder (B, T) is the gradient of the loss to cache.ponder, if any.

        For a loss that adds weight · mean ponder, dponder is weight / (number of words), at the words.
        """
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dstates, dps = self._mix_backward(dy, cache, dponder)
        dx, dothers = 0, None  # nothing comes after the last step
        for step, dstate, dp in zip(cache.steps[::-1], dstates[::-1], dps[::-1], strict=True):
            # a state is mixed into y, and handed to the next step: two ways
            dnew, dold = self._halt_backward(dx + dstate, dp, step.halt)
            grads = self.layer.backward(dnew, step.layer)
            dx, *dmore = grads if isinstance(grads, tuple) else (grads,)
            dx = dx + dold
            # every step read the same memory, so its gradients add up
            dothers = [a + b for a, b in zip(dothers, dmore, strict=True)] if dothers else dmore
        return (dx, *dothers) if dothers else dx

    def _signalled(self, x, n, start=0):
        """x with the vectors of its positions and of step n. Shapes: x (B, T, D)."""
        if self.positions is None:
            return x
        position, _ = self.positions.forward(x.shape[1], start)  # (T, D)
        time, _ = self.times.forward(1, n)  # (1, D)
        return x + position + time

    def _halt(self, new, old, running, steps):
        """After one step: who runs gets the new state, and may stop. Returns (state, cache, running)."""
        if self.halting is None:
            return new, None, running
        x, held = hold(new, old, running)
        logit, unit = self.halting.forward(x)  # (B, T, 1)
        p, _ = sigmoid(logit)
        total = p.real + sum(step.halt.p.real for step in steps)  # (B, T, 1)
        return x, HaltCache(held, unit, p), running & (total[..., 0] < 1 - self.epsilon)

    def _halt_backward(self, dstate, dp, cache):
        """Returns (dnew, dold): to the layer's output, and past it where a position no longer ran."""
        if cache is None:
            return dstate, 0
        # p = sigmoid(w · state + b), and the state was handed on: two ways
        dstate = dstate + self.halting.backward(sigmoid_backward(dp[..., None], cache.p), cache.unit)
        return hold_backward(dstate, cache.held)

    def _mix(self, x, steps):
        """The last state x, or the mixture of all. Returns (y, cache)."""
        if self.halting is None:
            return x, None
        stack = array_module(x).stack
        states = stack([step.halt.unit.x for step in steps])  # (N, B, T, D)
        p = stack([step.halt.p[..., 0] for step in steps])  # (N, B, T)
        took = stack([step.halt.held[..., 0] for step in steps])
        return mix_states(states, p, took)

    def _mix_backward(self, dy, cache, dponder):
        """Returns (dstates, dp), an entry for each step."""
        if cache.mix is None:
            before = len(cache.steps) - 1  # whose states only the next step saw
            return [0] * before + [dy], [None] * (before + 1)
        return mix_states_backward(dy, cache.mix, dponder=dponder)


class UniversalEncoder(Universal):
    """One encoder layer, repeated n_layers times or as often as each word needs; settings as in Universal.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S), words (B, S) bool: with halting, the padding
    takes no step and becomes 0 -> memory (B, S, D). Source: Dehghani et al. 2019, section 2.
    """

    def __init__(self, config, **settings):
        super().__init__(EncoderLayer, config, **settings)

    def forward(self, x, mask=None, *, words=None, query_mask=None, train=False, rng=None):
        """Returns (memory, cache)."""
        return self._repeat(x, mask, words=words, query_mask=query_mask, train=train, rng=rng)


class UniversalDecoder(Universal):
    """One decoder layer, repeated in the same way, which reads the encoder's output at every step.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S), words (B, T) bool -> y (B, T, D). Source: Dehghani et al. 2019, section 2.
    """

    def __init__(self, config, **settings):
        super().__init__(DecoderLayer, config, **settings)

    def forward(
        self,
        x,
        memory,
        mask=None,
        memory_mask=None,
        *,
        words=None,
        query_mask=None,
        train=False,
        rng=None,
    ):
        """Returns (y, cache)."""
        settings = {"words": words, "query_mask": query_mask, "train": train, "rng": rng}
        return self._repeat(x, memory, mask, memory_mask, **settings)

    def remember(self, memory):
        """What cross-attention keeps of the encoder's output: the same at every step."""
        return self.layer.remember(memory)

    def step(self, x, past, memory, memory_mask=None):
        """The one position that comes next; past holds its keys and values for each step, None at first.

        Every step is taken, since words that come later may run longer and look at this one.
        Shapes: x (B, 1, D). Returns (y, past).
        """
        past = [None] * self.n_steps if past is None else past
        start = 0 if past[0] is None else past[0].k.shape[2]
        steps: list[StepCache] = []
        kept = []
        running = array_module(x).ones(x.shape[:2], bool)  # (B, 1)
        for n in range(1, self.n_steps + 1):
            new, keys_values = self.layer.step(self._signalled(x, n, start), past[n - 1], memory, memory_mask)
            x, halt, running = self._halt(new, x, running, steps)
            steps.append(StepCache(None, halt))
            kept.append(keys_values)
        y, _ = self._mix(x, steps)
        return (y if self.norm is None else self.norm.forward(y)[0]), kept


def _check(config, epsilon, halting_bias):
    if config.positions not in (*LAYOUTS, "none"):
        raise UserError(
            f"positions is {config.positions!r}: a Universal Transformer adds sinusoids at every step, so "
            f"choose one of {', '.join(LAYOUTS)}, or none"
        )
    if not (is_number(epsilon) and 0 < epsilon < 1):
        raise UserError(f"epsilon is {epsilon!r}: it is a share, above 0 and below 1")
    if not (is_number(halting_bias) and math.isfinite(halting_bias)):
        raise UserError(f"halting_bias is {halting_bias!r}: it must be a number, and a finite one")
