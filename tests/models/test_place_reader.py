"""The model that reads a named place, and its task."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.models.place_reader import Reader, make_places


def test_the_answer_is_at_the_named_place():
    places = make_places(50, np.random.default_rng(0))
    for query, memory, symbol in zip(*places, strict=True):
        named = (memory[:, :6] == query).all(-1)
        assert named.sum() == 1
        assert memory[named, 6:].argmax() == symbol


def test_an_unknown_method():
    with pytest.raises(UserError, match="choose one of soft, hard"):
        Reader("harder", rng=np.random.default_rng(0))
