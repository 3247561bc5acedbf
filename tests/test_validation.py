"""The type of a value that JSON gives, by an annotation, and indices."""

from typing import Any, Literal

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.validation import has_type, require_index

FITS = [
    (1, float),
    (1, int | None),
    (None, int | None),
    ("a", Literal["a", "b"]),
    ([1, "a"], tuple[int, str]),
]
FITS += [([1, 2, 3], tuple[int, ...]), ([], tuple[int, ...]), ((1, 2), list[int]), ([[1]], list[list[int]])]
FITS += [(True, bool), (object(), Any), ({}, dict[str, int])]
OTHERS = [(True, int), (True, float), (1.5, int), ("c", Literal["a", "b"]), ([1, "a"], tuple[int, ...])]
OTHERS += [
    ([1], tuple[int, int]),
    ([1, 2, 3], tuple[int, int]),
    ("ab", list[str]),
    ([["a"]], list[list[int]]),
]


@pytest.mark.parametrize(("values", "expected"), [(FITS, True), (OTHERS, False)])
def test_a_value_has_the_type_of_an_annotation(values, expected):
    assert [each for each in values if has_type(*each) != expected] == []


@pytest.mark.parametrize("wrong", [True, 1.0, -1, 3, "1"])
def test_an_index_is_a_whole_number_below_the_count(wrong):
    assert require_index("query", np.int64(2), 3) == 2
    with pytest.raises(UserError, match="there are 3 queries, counted from 0"):
        require_index("query", wrong, 3)
    with pytest.raises(UserError, match="there is 1 layer, counted from 0"):
        require_index("--layer", 1, 1)
