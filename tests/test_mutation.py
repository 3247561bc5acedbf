"""The mutants: what is changed and what is left out, the draw, and the trial of one mutant.

tests/mutation/run.py checks that the tests kill them.
"""

import textwrap

import pytest
from mutation.equivalent import EQUIVALENT, Equivalent
from mutation.mutant import all_mutants, mutants_of, sample
from trials.circle import try_fault
from trials.reach import measure
from trials.trial import ROOT


def changes(code):
    """Return the changes of a piece of code as a dict from (before, after) to the operator."""
    source = "def function():\n" + textwrap.indent(code, "    ")
    return {(m.before, m.after): m.operator for m in mutants_of("any.py", source)}


CHANGES = {
    "arithmetic": ("y = a + b * c", {
        ("y = a + b * c", "y = (a - b * c)"),
        ("y = a + b * c", "y = a + (b / c)"),
    }),
    "+=": ("y += a", {("y += a", "y -= a"), ("y += a", "pass")}),
    "comparison": ("if a < b: f = g", {("a < b", "(a <= b)")}),
    "and": ("y = a and b or c", {
        ("y = a and b or c", "y = (a and b) and c"),
        ("y = a and b or c", "y = (a or b) or c"),
    }),
    "condition": ("y = a if b else c", {("y = a if b else c", "y = a if (not b) else c")}),
    "no double negation": ("while not a: f = g", {("not a", "a")}),
    "filter": ("y = [a for a in b if a]", {("y = [a for a in b if a]", "y = [a for a in b if (not a)]")}),
    "sign": ("y = -x", {("y = -x", "y = x")}),
    "numbers": ("y = f[3, 0.0, 0.5]", {
        ("y = f[3, 0.0, 0.5]", "y = f[4, 0.0, 0.5]"),
        ("y = f[3, 0.0, 0.5]", "y = f[3, 1.0, 0.5]"),
        ("y = f[3, 0.0, 0.5]", "y = f[3, 0.0, 1.0]"),
    }),
    "bool": ("y = True", {("y = True", "y = False")}),
    "keyword": ("y = f(x, train=train)", {("y = f(x, train=train)", "y = f(x)")}),
    "call": ("check(mask)", {("check(mask)", "pass")}),
    "same name": ("x = f(x)", {("x = f(x)", "pass")}),
    "another name": ("y = f(x)", set()),
    "arguments": ("y = f(a, b)", {("y = f(a, b)", "y = f(b, a)")}),
    "symmetric functions": ("z = np.add(a, b, out=y)\ny = max(a, b, c)\ny = x.swapaxes(i, j)", {
        ("z = np.add(a, b, out=y)", "z = np.add(a, b)"),
    }),
    "functions that are not": ("y = np.add(a, b, c)\ny = add(a, b)\ny = np.swapaxes(a, b, c)", {
        ("y = np.add(a, b, c)", "y = np.add(a, c, b)"),
        ("y = add(a, b)", "y = add(b, a)"),
        ("y = np.swapaxes(a, b, c)", "y = np.swapaxes(b, a, c)"),
    }),
    "a function that a call returns": ("y = f(a)(b, c)", {("y = f(a)(b, c)", "y = f(a)(c, b)")}),
    "strict": ("for a, b in zip(c, d, strict=True): f = g", {
        ("zip(c, d, strict=True)", "zip(d, c, strict=True)"),
    }),
    "tuple": ("def f():\n    return a, b", {("return a, b", "return (b, a)")}),
    "axis": ("y = x.sum(-1)", {
        ("y = x.sum(-1)", "y = x.sum(0)"),
        ("y = x.sum(-1)", "y = x.sum(-2)"),
    }),
    "default": ("def f(eps=1.0):\n    return eps", {("1.0", "2.0")}),
    "raise": ("raise UserError(f'{a + b} is not {c}', 1 + 2)", {
        ("raise UserError(f'{a + b} is not {c}', 1 + 2)", "pass"),
    }),
    "for people": ("def __repr__(self):\n    return a + b", set()),
    "docstring and annotation": ("def f(x: g(1 + 2)) -> 3:\n    'a + b'\n    y: g(1 + 2) = x", set()),
    "free axis": ("y = x.reshape(-1)", set()),
    "message": ("y = f'{a + b}'", set()),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CHANGES.values(), ids=CHANGES)
def test_the_changes_of_a_piece_of_code(code, expected):
    assert set(changes(code)) == expected


def test_a_mutant_changes_only_its_own_place():
    """The characters before it need several bytes, and its text occurs twice."""
    source = "class A:\n    def f(self):\n        # αβ\n        x = 'γ' or 2 * y\n        x = 'γ' or 2 * y\n"
    mutants = [mutant for mutant in mutants_of("any.py", source) if mutant.operator == "arithmetic"]
    assert [(mutant.function, mutant.nth) for mutant in mutants] == [("A.f", 1), ("A.f", 2)]
    assert mutants[1].changed(source) == source[:-6] + "(2 / y)\n"
    assert mutants[0].changed(source).count("2 / y") == 1
    assert len({mutant.name for mutant in mutants}) == 2


def test_every_drawn_mutant_is_valid_python_and_a_change():
    for mutant in sample(all_mutants(), 1, 100):
        source = (ROOT / "npformer" / mutant.file).read_text(encoding="utf-8")
        changed = mutant.changed(source)
        assert changed != source
        compile(changed, mutant.file, "exec")
    assert len({mutant.name for mutant in all_mutants()}) == len(all_mutants())


def stale(declarations):
    """Return the declarations of mutants that do not exist."""
    return [each for each in declarations if not any(each.matches(mutant) for mutant in all_mutants())]


def test_every_equivalent_mutant_still_exists():
    assert stale(EQUIVALENT) == [], "take these from tests/mutation/equivalent.txt"
    assert all(each.reason for each in EQUIVALENT)
    gone = Equivalent("nn/linear.py", "Linear.forward", "y = x", "y = -x", "there is no such statement")
    assert stale([gone]) == [gone]


def test_the_tests_tell_a_wrong_mutant_from_an_equivalent_one():
    """They run in processes of their own, on copies of the package."""
    control, reach = measure(["functional/test_softmax.py"])
    assert control.status == 0
    mutants = [mutant for mutant in all_mutants() if mutant.function == "log_softmax"]
    (wrong,) = [mutant for mutant in mutants if "x + x.real.max" in mutant.after]
    outcome = try_fault(wrong, reach)
    assert outcome.caught
    assert outcome.test.startswith("tests/functional/test_softmax.py::")
    assert try_fault(wrong, None, outcome.test).test == outcome.test  # it needs no Reach
    harmless = wrong._replace(new="(x - (x.real.max(-1, keepdims=True)))")
    assert not try_fault(harmless, reach).caught
