"""The table of mistakes: the repair undoes what the grader makes, and tests plant the same changes."""

import ast

import numpy as np
import pytest

from npformer.mistakes.mutants import likely
from npformer.mistakes.operators import COMPARISONS, OPPOSITE, SIMPLER, TABLE, repairs
from npformer.mistakes.syntax import filled, matched, parsed

LETTERS = {letter: ast.Name(f"name_{letter}", ast.Load()) for letter in "abcdfijmtv"} | {
    "p": [ast.Constant(1)],
    "k": [ast.keyword("axis", ast.Constant(0))],
}
NAMES = {"": [part.id for part in LETTERS.values() if isinstance(part, ast.Name)]}
BOTH = [row for row in TABLE if row.made and row.found]


def code_of(node):
    return ast.unparse(ast.fix_missing_locations(node))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.right} as {row.wrong}")
def test_a_row_changes_code_and_its_letters_are_found(row):
    right, wrong = (filled(code, LETTERS) for code in (row.right, row.wrong))
    assert code_of(right) != code_of(wrong)
    assert row.made or row.found
    known = matched(row.right, right)
    assert known.keys() <= LETTERS.keys()
    if row.made:
        assert code_of(filled(row.wrong, known)) == code_of(wrong)


@pytest.mark.parametrize("row", BOTH, ids=lambda row: f"{row.right} as {row.wrong}")
def test_the_repair_undoes_what_the_grader_makes(row):
    right = filled(row.right, LETTERS)
    is_step = isinstance(parsed(row.wrong), ast.stmt) and isinstance(right, ast.expr)
    node = ast.Expr(right) if is_step else right
    changes = likely(node, NAMES)
    wrong = next(new for _, new in changes if code_of(new) == code_of(filled(row.wrong, LETTERS)))
    if "v" in row.right:  # the repair tries all variables in the place of v
        assert code_of(filled(row.right, matched(row.wrong, wrong) | {"v": LETTERS["v"]})) == code_of(right)
    else:
        assert code_of(right) in [code_of(new) for _, new in repairs([row], wrong)]


def test_operations_and_comparisons_have_another_one():
    assert OPPOSITE[ast.Add] is ast.Sub
    assert OPPOSITE[ast.Mult] is ast.Div
    assert all(other is not op for op, others in COMPARISONS.items() for other in others)


def test_a_letter_that_occurs_twice_stands_for_the_same_code():
    assert matched("a * b / b", parsed("x * y / y"))
    assert matched("a * b / b", parsed("x * y / z")) is None


@pytest.mark.parametrize(("code", "simpler"), SIMPLER)
def test_simpler_code_has_the_same_value(code, simpler):
    kind = bool if any(sign in code for sign in ("not", "~")) else float
    a, b = np.arange(4.0).reshape(2, 2).astype(kind), np.full((2, 2), 2).astype(kind)
    if "not" in code:
        a, b = True, False
    assert np.array_equal(eval(code, {"a": a, "b": b}), eval(simpler, {"a": a, "b": b}))
    assert len(simpler) < len(code)
