"""Cases of the recurrent networks."""

from collections.abc import Iterator

import numpy as np

from npformer import functional as F
from npformer.checking.cases.case import FF, B, Case, D, Maker, S, floats, given, make_case, pair_case
from npformer.nn.recurrent import KINDS, Bidirectional, Recurrent

TOKEN_MASK = np.array([[True] * S, [True] * (S - 2) + [False] * 2])  # (B, S) the second sentence is padded


def recurrent_cases() -> Iterator[Case]:
    """Yield the cells, and LSTM and GRU in both directions, with padding and with an initial state."""
    yield pair_case("LSTM cell", (F.lstm_cell, F.lstm_cell_backward), floats(B, 4 * D), floats(B, D))
    gates = floats(B, 3 * D)
    yield pair_case("GRU cell", (F.gru_cell, F.gru_cell_backward), gates, gates, floats(B, D))
    real = given(np.array([True, False]))
    yield pair_case(
        "masked update", (F.masked_update, F.masked_update_backward), floats(B, D), floats(B, D), real
    )
    x = floats(B, S, D)
    for kind, (_, states) in KINDS.items():
        for name, backwards in {"": False, ", backwards": True}.items():
            yield make_case(f"Recurrent, {kind}{name}", _reader(kind, backwards), x, mask=TOKEN_MASK)
        state = floats(B, states * FF)
        yield make_case(f"Recurrent, {kind}, first state", _reader(kind, False), x, state, mask=TOKEN_MASK)
        yield make_case(f"Bidirectional, {kind}", _both(kind), x, mask=TOKEN_MASK)


def _reader(kind: str, backwards: bool) -> Maker:
    return lambda rng: Recurrent(D, FF, kind=kind, backwards=backwards, rng=rng, dtype=np.float64)


def _both(kind: str) -> Maker:
    return lambda rng: Bidirectional(D, FF, kind=kind, rng=rng, dtype=np.float64)
