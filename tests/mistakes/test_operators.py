"""The table of changes, and the letters in the code of its rows."""

import ast

import numpy as np
import pytest

from npformer.mistakes.operators import (
    DERIVATIVES,
    MISSING,
    MISSING_VALUES,
    OFTEN_MISSING,
    OPERATIONS,
    SIMPLER,
    STEPS,
    repairs,
)
from npformer.mistakes.syntax import filled, matched, parsed, ways

TABLE = (*MISSING_VALUES, *DERIVATIVES, *OFTEN_MISSING, *MISSING, *OPERATIONS, *STEPS)
LETTERS = {letter: ast.Name(f"name_{letter}", ast.Load()) for letter in "ABIV"}


def code_of(node):
    return ast.unparse(ast.fix_missing_locations(node))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.right} as {row.wrong}")
def test_the_repair_undoes_a_row(row):
    right, wrong = (filled(code, LETTERS) for code in (row.right, row.wrong))
    assert code_of(right) != code_of(wrong)
    if "V" in row.right:  # the repair tries all variables in the place of V
        assert code_of(filled(row.right, matched(row.wrong, wrong) | {"V": LETTERS["V"]})) == code_of(right)
    else:
        assert code_of(right) in [code_of(new) for _, new in repairs([row], wrong)]


def test_a_letter_that_occurs_twice_stands_for_the_same_code():
    assert matched("A * B / B", parsed("x * y / y"))
    assert matched("A * B / B", parsed("x * y / z")) is None


FORMS = [
    ("F(*Q, X, *R)", "f(1, 2, k=3)", [("[]", "1"), ("[1]", "2")]),
    ("A.M(-1)", "x.sum(-1)", []),
    ("A.sum(-1)", "x.sum(-1)", [("x",)]),
    ("A.T", "x.T", [("x",)]),
    ("A - 1", "x - -1", []),
]


@pytest.mark.parametrize(("form", "code", "found"), FORMS)
def test_a_form_matches_code_in_all_ways(form, code, found):
    known = list(ways(parsed(form), parsed(code)))
    texts = [
        tuple(
            str([ast.unparse(n) for n in way[x]]).replace("'", "")
            if isinstance(way[x], list)
            else ast.unparse(way[x])
            for x in ("Q", "X", "A")
            if x in way
        )
        for way in known
    ]
    assert texts[: len(found)] == found
    assert bool(known) == bool(found)


@pytest.mark.parametrize(("code", "simpler"), [row[:2] for row in SIMPLER])
def test_simpler_code_has_the_same_value(code, simpler):
    kind = bool if any(sign in code for sign in ("not", "~")) else float
    A, B = np.arange(4.0).reshape(2, 2).astype(kind), np.full((2, 2), 2).astype(kind)
    if "not" in code:
        A, B = True, False
    assert np.array_equal(eval(code, {"A": A, "B": B}), eval(simpler, {"A": A, "B": B}))
    assert len(simpler) < len(code)
