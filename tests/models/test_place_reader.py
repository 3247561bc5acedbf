"""The model that reads a named place, and its task."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.models.place_reader import METHODS, Reader, make_places


def test_every_place_is_asked_for_and_every_symbol_occurs():
    places = make_places(200, np.random.default_rng(0), np.float32)
    asked = (places.memory[..., :6] == places.query).all(-1)  # (B, S)
    assert asked.any(0).all()
    assert places.memory[..., 6:].any((0, 1)).all()
    assert places.query.dtype == places.memory.dtype == np.float32


def test_only_the_straight_through_method_passes_its_gradient_straight_through():
    readers = {method: Reader(method, rng=np.random.default_rng(0)) for method in METHODS}
    found = [name for name, reader in readers.items() if getattr(reader.attention, "straight_through", False)]
    assert found == ["straight through"]


def test_an_unknown_method():
    with pytest.raises(UserError, match="choose one of soft, hard"):
        Reader("harder", rng=np.random.default_rng(0))
