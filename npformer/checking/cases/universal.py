"""Cases of the Universal Transformer: the mean of states, and stacks that repeat one layer."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array, array_module, like
from npformer.checking.cases.case import B, Case, D, Maker, S, T, floats, made, make_case
from npformer.checking.cases.models import (
    DROPPING,
    PRE,
    SIZES,
    SOURCE,
    TARGET_IN,
    model_case,
    small_config,
)
from npformer.functional.halting import MixCache
from npformer.functional.masks import causal_mask, padding_mask
from npformer.models.transformer import TransformerConfig
from npformer.models.universal import UniversalCache, UniversalConfig, UniversalDecoder, UniversalEncoder
from npformer.nn.context import INFERENCE, Context

N_STEPS = 4
COUNTS = np.array([[4, 1, 2, 3], [2, 4, 3, 0]])  # (B, T) the number of steps of each position
TOOK = np.arange(N_STEPS)[:, None, None] < COUNTS  # (N, B, T)


def universal_cases() -> Iterator[Case]:
    """Yield the mean of states, and encoder and decoder with fixed steps and with halting."""
    yield make_case("mixed states", _Mixed, floats(N_STEPS, B, T, D), _probabilities)
    of_source: dict[str, Any] = {"mask": padding_mask(SOURCE), "token_mask": SOURCE != 0}
    of_target: dict[str, Any] = {
        "mask": padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN),
        "memory_mask": padding_mask(SOURCE),
    }
    for norm, changes in {"post-norm": {}, "pre-norm": PRE, "no signals": {"positions": "none"}}.items():
        config = small_config(n_layers=N_STEPS, **changes)
        for how, halting in {"fixed steps": False, "halting": True}.items():
            name, encoder = f"{how}, {norm}", _repeated(UniversalEncoder, config, halting)
            yield make_case(f"UniversalEncoder, {name}", encoder, floats(B, S, D), **of_source, **DROPPING)
            decoder, inputs = _repeated(UniversalDecoder, config, halting), (floats(B, T, D), floats(B, S, D))
            yield make_case(f"UniversalDecoder, {name}", decoder, *inputs, **of_target, **DROPPING)


def universal_model_cases() -> Iterator[Case]:
    """Yield whole translators with their loss, which contains the ponder cost if they halt."""
    halting: dict[str, Any] = {"halting_bias": -0.5, "ponder_weight": 0.3}
    for name, changes in {
        "halting, post-norm": {**halting, "tied": "none"},
        "halting, pre-norm": {**halting, **PRE, "tied": "all"},
        "fixed steps": {"halting": False, "positions": "none"},
    }.items():
        yield model_case(name, UniversalConfig().replace(**(SIZES | {"n_layers": N_STEPS} | changes)))


def _probabilities(rng: np.random.Generator) -> Array:
    return rng.uniform(0.1, 0.4, (N_STEPS, B, T))


class _Mixed:
    """The mean of the states, concatenated with the ponder cost."""

    def __init__(self, rng: np.random.Generator) -> None:
        pass

    named_parameters = dict

    def forward(self, states: Array, p: Array) -> tuple[Array, Any]:
        y, cache = F.mix_states(states, p, like(TOOK, p))
        return array_module(y).concatenate([y, cache.ponder[..., None]], -1), cache

    def backward(self, dy: Array, cache: MixCache) -> tuple[Array, Array]:
        return F.mix_states_backward(dy[..., :-1], cache, dponder=dy[..., -1])


def _repeated(kind: Any, config: TransformerConfig, halting: bool) -> Maker:
    """Return a function that builds a stack. With halting, the ponder cost is part of its output."""
    if not halting:
        return made(kind, config)
    return lambda rng: _WithPonder(made(kind, config, halting=True, halting_bias=-0.5)(rng))


class _WithPonder:
    """A stack with halting, whose output is concatenated with the ponder cost."""

    def __init__(self, stack: Any) -> None:
        self.stack = stack
        self.named_parameters = stack.named_parameters

    def forward(
        self, x: Array, memory: Array | None = None, *, context: Context = INFERENCE, **settings: Any
    ) -> tuple[Array, Any]:
        inputs = [x] if memory is None else [x, memory]
        y, cache = self.stack.forward(*inputs, context=context, **settings)
        return array_module(y).concatenate([y, cache.ponder[..., None]], -1), cache

    def backward(self, dy: Array, cache: UniversalCache) -> Any:
        return self.stack.backward(dy[..., :-1], cache, dponder=dy[..., -1])
