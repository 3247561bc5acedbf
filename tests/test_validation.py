"""The type of a value that JSON gives, by an annotation."""

from typing import Any, Literal

import pytest

from npformer.validation import has_type

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
