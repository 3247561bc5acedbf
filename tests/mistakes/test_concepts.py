"""The concepts: changes of code that many solutions share, and the sentences that name them."""

import ast

import pytest
from mistake_tables import drawn

from npformer.learn.exercises import EXERCISES
from npformer.mistakes.concepts import concepts_in
from npformer.mistakes.mutants import source_of
from npformer.mistakes.tables import Mistake, rows_of

NORM = """\
def norm_backward(dy, cache):
    xhat, rstd, gain = cache
    dxhat = dy * gain
    along = (dxhat * xhat).mean(-1, keepdims=True)
    dx = rstd * (dxhat - xhat * along)
    return dx, (dy * xhat).sum(0)
"""
STACK = """\
def stack_backward(layers, dy, caches, mask=None):
    for layer, cache in zip(layers[::-1], caches[::-1]):
        dy = layer.backward(dy, cache)
    if mask is not None:
        dy = np.where(mask, dy, 0)
    return dy
"""
GATES = """\
def gates_backward(dy, g, h, total, has_gate):
    dh = np.where(g > 0, dy, 0)
    total = total + dh
    slope = h if has_gate else 1
    return dy * g * (1 - g), dy * (1 - h**2), slope * total[:, None]
"""


def named(source):
    """Return the changed lines by sentence: the upper one if two changes have one sentence."""
    found = {}
    for says, changes in concepts_in(source):
        found.setdefault(says, [new.strip() for _, new in changes])
    return found


NAMES = [
    (NORM, "the factor dy is left out in dxhat: the chain rule multiplies by it", ["dxhat = gain"]),
    (
        NORM,
        "xhat · along is not subtracted from dxhat in dx: the term is left out",
        ["dx = rstd * dxhat"],
    ),
    (
        NORM,
        "the mean of dxhat · xhat is a sum in along: it is not divided by the number of entries",
        ["along = (dxhat * xhat).sum(-1, keepdims=True)"],
    ),
    (
        NORM,
        "the mean of dxhat · xhat runs over the wrong axis in along: over axis 0 instead of -1",
        ["along = (dxhat * xhat).mean(0, keepdims=True)"],
    ),
    (NORM, "dx is divided by the batch size: it must be a sum, not averaged", None),
    (NORM, "along is computed from dy instead of dxhat", ["along = (dy * xhat).mean(-1, keepdims=True)"]),
    (STACK, "layer.backward is called twice", None),
    (GATES, "total is overwritten: what it held before must be added to it", ["total = dh"]),
    (GATES, "1 is used in every case in slope: it is wrong in the case has_gate", ["slope = 1"]),
    (GATES, "the condition looks at dy instead of g: g > 0 decides", ["dh = np.where(dy > 0, dy, 0)"]),
    (
        GATES,
        "sigmoid or tanh is applied to g, which is its result already; and sigmoid or tanh is applied to h, "
        "which is its result already",
        None,
    ),
    (STACK, "the case in which mask is not None is left out", ["pass"]),
    (STACK, "mask of 0 is treated like None: compare with `is not None`", None),
    (STACK, "the condition mask is left out in dy: dy is used for all entries", ["dy = dy"]),
    (
        STACK,
        "all of layers is used in its order, and not reversed; and all of caches is used in its order, and "
        "not reversed",
        None,
    ),
]


@pytest.mark.parametrize(("source", "says", "lines"), NAMES, ids=[says[:40] for _, says, _ in NAMES])
def test_a_change_is_named_where_the_code_has_its_form(source, says, lines):
    found = named(source)
    assert says in found, "\n".join(found)
    assert lines is None or found[says] == lines


def test_every_change_of_a_solution_is_code():
    sources = [source_of(function) for exercise in EXERCISES for function in exercise.plain.values()]
    for source in drawn(sources, share=4):
        for says, changes in concepts_in(source):
            text = source
            for old, new in changes:
                assert old in text, says
                text = text.replace(old, new)
            assert text != source, says
            ast.parse(text)


def test_a_while_loop_is_not_changed():
    assert not list(concepts_in("def f(x):\n    while x > 1:\n        x = x / 2\n    return x\n"))


def test_a_row_may_replace_the_code_of_the_row_above_and_go_on_below():
    table = r"""
    a => b ## one
    => c
        ## two
        words
    # a comment
    d\n => e && f => ## three
    """
    assert list(rows_of(table)) == [
        Mistake("one", (("a", "b"),)),
        Mistake("two words", (("a", "c"),)),
        Mistake("three", (("d\n", "e"), ("f", ""))),
    ]


def test_a_number_of_the_learners_code_stands_for_the_word_number():
    (mistake,) = rows_of("A + eps => A + NUMBER ## NUMBER is added")
    small, negative = mistake.with_numbers([1e-6, -2])
    assert (small.says, small.changes) == ("1e-6 is added", (("A + eps", "A + 1e-06"),))
    assert negative.changes == (("A + eps", "A + (-2)"),)
    (other,) = rows_of("A => B ## A is left out")
    assert [*other.with_numbers([])] == [other]
    assert [*mistake.with_numbers([])] == []
