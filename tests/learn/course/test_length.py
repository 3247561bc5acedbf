"""The length and the form of lessons."""

import ast
import re

import pytest
from course import each_lesson, prose_of, texts_of

from npformer.learn.course.latex import to_mathml, to_text
from npformer.learn.course.length import (
    CODE_SPAN,
    FENCE,
    count_symbols,
    count_words,
    import_lines,
    minutes_of,
    new_lines,
    plain,
    reading_time,
)
from npformer.learn.course.lesson import Lesson, find_lesson
from npformer.learn.course.prose import formulas, replace_formulas, split_answers
from npformer.learn.course.routes import MAIN

MOST_MINUTES = 40
MOST_ON_THE_MAIN_ROUTE = 30
MOST_BEFORE_A_LOSS_FALLS = 15  # minutes of reading
MOST_WORDS = 150  # before a cell of code, a picture or a question
MOST_IMPORTS = 24  # lines of a cell, one screen
TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)
# what follows one of these headings may be as long as it needs to be
END_MATTER = ("## What the source documents say", "## Summary")


def passages(lesson):
    """Return the prose between two stops, in order, as far as the part that ends a lesson.

    A stop is a cell of code, a picture (an image or a fenced block), a table, or a question with its answer.
    """
    found, passage = [], []
    for cell in lesson.cells:
        blocks = [""] if cell.kind == "code" else blocks_of(cell.text)
        for block in blocks:
            ends = block.startswith(END_MATTER)
            if ends or not block or block.startswith(("**Question", "![")):
                found.append("\n\n".join(passage))
                passage = []
            if ends:
                return [passage for passage in found if passage]
            if block:
                passage.append(block)
    return [passage for passage in [*found, "\n\n".join(passage)] if passage]


def blocks_of(text):
    """Return the paragraphs of prose; "" stands for a folded answer, a fenced block or a table."""
    blocks = []
    for part in split_answers(text):
        apart = TABLE.sub("\n\n\0\n\n", FENCE.sub("\n\n\0\n\n", part.text))
        shown = apart if part.kind == "text" else "\0"
        blocks += [block.replace("\0", "") for block in re.split(r"\n\s*\n", shown.strip("\n")) if block]
    return blocks


# ---------------------------------------------------------------------------------------------------------
# Lessons


@each_lesson
def test_the_opening_says_how_long_it_takes_and_what_the_reader_needs(lesson):
    opening = lesson.cells[0].text
    stated = re.search(r"^\*About (\d+) minutes\b[^*]*\. You need: [^*]+\*$", opening, re.MULTILINE)
    most = MOST_ON_THE_MAIN_ROUTE if lesson in MAIN.lessons else MOST_MINUTES
    assert int(stated[1]) == minutes_of(lesson) <= most


def test_a_loss_of_the_readers_own_falls_in_the_first_quarter_of_an_hour():
    cells = find_lesson("0.0").cells
    trained = next(n for n, cell in enumerate(cells) if "losses" in cell.text and "print" in cell.text)
    assert "# update" in cells[trained].text
    assert 5 < reading_time(cells[: trained + 1]) <= MOST_BEFORE_A_LOSS_FALLS


@each_lesson
def test_no_passage_is_a_wall_and_imports_fit_a_screen(lesson):
    assert [text for text in passages(lesson) if count_words(text) > MOST_WORDS] == []
    with_imports = [text for text in texts_of([lesson], "code") if import_lines(text)]
    assert [text for text in with_imports if text.count("\n") >= MOST_IMPORTS] == []


@each_lesson
def test_the_end_has_a_summary_questions_and_exercises(lesson):
    prose = prose_of(lesson)
    places = [prose.index(f"\n## {name}\n") for name in ("Summary", "Questions", "Exercises")]
    assert places == sorted(places)
    summary, questions = prose[places[0] : places[1]], prose[places[1] : places[2]]
    assert len(re.findall(r"^- ", summary, re.MULTILINE)) == 5
    answers = [part for part in split_answers(questions) if part.kind == "answer"]
    assert len(answers) == questions.count("**Question.**") > 0


@each_lesson
def test_every_question_is_followed_by_its_answer(lesson):
    for text in texts_of([lesson], "prose"):
        parts = split_answers(text)
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            assert part.text.count("**Question.**") <= 1, part
            if "**Question.**" in part.text:
                assert after is not None, part
                assert (after.kind, after.title) == ("answer", "Answer")
        assert "<details>" not in "".join(part.text for part in parts)


@each_lesson
def test_cells_that_only_check_or_draw_have_tags(lesson):
    for cell in lesson.cells:
        if cell.kind == "code":
            assert "check" in cell.tags or not is_check(cell.text), cell.line
            assert "plot" in cell.tags or "show_figure(" not in cell.text, cell.line


def is_check(code):
    """Return whether all statements of a cell are assertions, and perhaps a last line that prints."""
    kinds = []
    for node in ast.parse(code).body:
        call = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        name = getattr(call, "id", "")
        kinds.append("assert" if isinstance(node, ast.Assert) or name.startswith("assert_") else name)
    return set(kinds[:-1]) <= {"assert"} and (kinds[-1] == "assert" or kinds[-2:] == ["assert", "print"])


@each_lesson
def test_every_formula_can_be_shown(lesson):
    """It has MathML, and a text in lines of at most 94 columns. No dollar sign is left over."""
    for text in texts_of([lesson], "prose"):
        for latex, display in formulas(text):
            assert to_mathml(latex, display=display)
            assert max(map(len, to_text(latex).splitlines())) <= 94, latex
            assert display or "\n" not in to_text(latex), f"{latex} needs lines of its own"
        left = replace_formulas(FENCE.sub("", text), lambda latex, display: "")
        assert "$" not in CODE_SPAN.sub("", left).replace(r"\$", "")


# ---------------------------------------------------------------------------------------------------------
# The formula

SOURCE = """\
# %% [markdown]
# # 90 · A *title* with `some code` and $x + y$
#
# *About 5 minutes.* **After this lesson you can** count.
# %%
import numpy as np
from numpy import (
    zeros,
    ones,
)

x = 1
x = 1
y = 2  # a comment
# %% tags=["check"]
assert x == 1
# %% [markdown]
# $$
# \\begin{aligned} a &= b \\\\ &= c \\end{aligned}
# $$
#
# $$a = b$$
#
# **Question.** Why?
#
# <details><summary>Answer</summary>
# So.
# </details>
#
# ```text
# a → b
# ```
# After the picture.
#
# ## Summary
#
# The end.
"""


@pytest.fixture
def lesson(course, inside):
    """Return a short lesson, which is the only one."""
    course({"90_short": SOURCE})
    return Lesson(inside / "lessons" / "90_short.py")


def test_words_lines_questions_and_derivations_are_counted(lesson):
    opening, end = [cell.text for cell in lesson.cells if cell.kind == "prose"]
    assert count_words(opening) == 16
    assert count_words(end) == 10
    assert "(lesson 3)" in plain("see (lesson 3)")
    assert new_lines(lesson.cells) == ["x = 1", "y = 2  # a comment"]


def test_the_minutes_of_words_lines_formulas_and_questions(lesson):
    # x + y counts as three words; one formula has several lines; one question
    assert reading_time(lesson.cells) == pytest.approx((26 + 2) / 130 + 2 / 5 + 1 + 2 + 2)


@pytest.mark.parametrize(
    ("latex", "count"),
    [("x", 1), ("x_{ti}", 3), (r"dw = dp \cdot 0.5", 7), (r"\mathrm{softmax}(S)", 4), (r"\left(a\right)", 3)],
)
def test_the_symbols_of_a_formula_are_counted(latex, count):
    assert count_symbols(latex) == count


def test_passages_end_at_code_at_pictures_and_at_questions(lesson):
    words = [count_words(text) for text in passages(lesson)]
    # the opening; the question, after two formulas; and the line after the answer and the picture
    assert words == [16, 0, 2, 3]
