"""Cases of the Universal Transformer: the mixture of states, and stacks that repeat one layer."""

from collections.abc import Iterator

import numpy as np

from npformer import functional as F
from npformer.gradcheck.cases.case import B, Case, D, S, T, floats, make_case
from npformer.gradcheck.cases.models import DROPPING, PRE, SOURCE, TARGET_IN, small_config
from npformer.masks import causal_mask, padding_mask
from npformer.transformer import UniversalDecoder, UniversalEncoder

N_STEPS = 4
COUNTS = np.array([[4, 1, 2, 3], [2, 4, 3, 0]])  # (B, T) steps: all numbers that there can be
TOOK = np.arange(N_STEPS)[:, None, None] < COUNTS  # (N, B, T)


def universal_cases() -> Iterator[Case]:
    """The mixture, and encoder and decoder with fixed steps and with halting, its cost included."""
    yield make_case("mixed states", _Mixed, floats(N_STEPS, B, T, D), _probabilities)
    for norm, changes in {"post-norm": {}, "pre-norm": PRE, "no signals": {"positions": "none"}}.items():
        config = small_config(n_layers=N_STEPS, **changes)
        for how, halting in {"fixed steps": False, "halting": True}.items():
            name = f"{how}, {norm}"
            masks = {"mask": padding_mask(SOURCE), "words": SOURCE != 0}
            encoder = _repeated(UniversalEncoder, config, halting)
            yield make_case(f"UniversalEncoder, {name}", encoder, floats(B, S, D), **masks, **DROPPING)
            masks = {
                "mask": padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN),
                "memory_mask": padding_mask(SOURCE),
            }
            decoder = _repeated(UniversalDecoder, config, halting)
            inputs = (floats(B, T, D), floats(B, S, D))
            yield make_case(f"UniversalDecoder, {name}", decoder, *inputs, **masks, **DROPPING)


def _probabilities(rng):
    return rng.uniform(0.1, 0.4, (N_STEPS, B, T))


class _Mixed:
    """The mixture, and what thinking cost beside it."""

    def __init__(self, rng):
        pass

    named_parameters = dict

    def forward(self, states, p):
        y, cache = F.mix_states(states, p, TOOK)
        return np.concatenate([y, cache.ponder[..., None]], -1), cache

    def backward(self, dy, cache):
        return F.mix_states_backward(dy[..., :-1], cache, dponder=dy[..., -1])


def _repeated(kind, config, halting):
    """With halting, the cost stands beside the output: so that its gradient is checked too."""

    def make(rng):
        settings = {"rng": rng, "dtype": np.float64}
        if halting:
            return _WithPonder(kind(config, halting=True, halting_bias=-0.5, **settings))
        return kind(config, **settings)

    return make


class _WithPonder:
    """A stack that halts, and what thinking cost beside its output."""

    def __init__(self, stack):
        self.stack = stack
        self.named_parameters = stack.named_parameters

    def forward(self, x, memory=None, **settings):
        inputs = [x] if memory is None else [x, memory]
        y, cache = self.stack.forward(*inputs, **settings)
        return np.concatenate([y, cache.ponder[..., None]], -1), cache

    def backward(self, dy, cache):
        return self.stack.backward(dy[..., :-1], cache, dponder=dy[..., -1])
