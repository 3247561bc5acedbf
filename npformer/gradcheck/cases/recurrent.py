"""Cases of the recurrent networks."""

from collections.abc import Iterator

import numpy as np

from npformer import functional as F
from npformer.gradcheck.cases.case import FF, B, Case, D, S, floats, given, make_case, pair_case
from npformer.layers.recurrent import KINDS, BothWays, Recurrent

WORDS = np.array([[True] * S, [True] * (S - 2) + [False] * 2])  # (B, S) the second sentence is padded


def recurrent_cases() -> Iterator[Case]:
    """The cells, and LSTM and GRU from either side, with padding, with and without a first state."""
    yield pair_case("LSTM cell", (F.lstm_cell, F.lstm_cell_backward), floats(B, 4 * D), floats(B, D))
    gates = floats(B, 3 * D)
    yield pair_case("GRU cell", (F.gru_cell, F.gru_cell_backward), gates, gates, floats(B, D))
    real = given(np.array([True, False]))
    yield pair_case("hold", (F.hold, F.hold_backward), floats(B, D), floats(B, D), real)
    x = floats(B, S, D)
    for kind, (_, states) in KINDS.items():
        for name, backwards in {"": False, ", backwards": True}.items():
            yield make_case(f"Recurrent, {kind}{name}", _reader(kind, backwards), x, mask=WORDS)
        state = floats(B, states * FF)
        yield make_case(f"Recurrent, {kind}, first state", _reader(kind, False), x, state, mask=WORDS)
        yield make_case(f"BothWays, {kind}", _both(kind), x, mask=WORDS)


def _reader(kind, backwards):
    return lambda rng: Recurrent(D, FF, kind=kind, backwards=backwards, rng=rng, dtype=np.float64)


def _both(kind):
    return lambda rng: BothWays(D, FF, kind=kind, rng=rng, dtype=np.float64)
