"""The concepts: changes of code that many solutions share, and the sentences that name them."""

import ast

from mistake_tables import drawn

from npformer.learn.exercises import EXERCISES
from npformer.mistakes.concepts import concepts_in
from npformer.mistakes.mutants import source_of
from npformer.mistakes.tables import Mistake, rows_of


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
