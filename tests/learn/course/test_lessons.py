"""The texts of the lessons: each has its parts, and no line of it is broken or mistaken for another."""

import re

import pytest
from course import CHAPTERS, LESSONS, each_chapter, each_lesson, prose_of, texts_of

from npformer.cli.output import console
from npformer.explorer.step_lines import STEP_LINES, VARIANTS
from npformer.learn.course.chapters import TITLES
from npformer.learn.course.prose import replace_formulas, split_answers
from npformer.learn.course.terminal import lesson_console, lines_of, prose
from npformer.learn.exercises import EXERCISES


@each_lesson
def test_the_lesson_has_its_number_and_a_picture(lesson):
    assert lesson.cells[0].text.startswith(f"# {lesson.number} · ")
    assert "show_figure(" in "\n".join(texts_of([lesson], "code"))
    assert not re.search("[│┌└├─▶▼]", prose_of(lesson))  # no diagram of letters


@each_chapter
def test_the_chapter_has_all_parts(lessons):
    """It compares with the package, shows a cache and a figure, checks gradients, and names its exercises."""
    code, text = "\n".join(texts_of(lessons, "code")), prose_of(*lessons)
    for part in ("assert_allclose(", "show(cache)", "show_figure(", "gradcheck(", "assert report.ok"):
        assert part in code
    assert "npformer exercise list" in text
    named = set(re.findall(r"npformer exercise start ([\w-]+)", text))
    assert named == {exercise.name for exercise in EXERCISES if exercise.chapter == lessons[0].chapter}


LEARNS = range(1, 13)
UPDATE = re.compile(
    r"^ +\w[\w.\[\], ]*(?: -= | = [^=\n]* - )", re.MULTILINE
)  # in a loop: w -= ..., or w = w - ...


@pytest.mark.parametrize("chapter", LEARNS)
def test_a_loss_falls_in_each_of_the_first_chapters(chapter):
    """Some lesson of the chapter takes update steps in a loop, and asserts how small its loss becomes."""
    taking = [
        lesson
        for lesson in CHAPTERS[chapter]
        if any("range(" in code and UPDATE.search(code) for code in texts_of([lesson], "code"))
    ]
    asserted = re.compile(r"assert.*(?:loss|final|e \* e)")
    assert any(asserted.search(code) for code in texts_of(taking, "code"))


@pytest.mark.parametrize("chapter", range(1, 15))
def test_a_chapter_looks_at_its_part_in_the_shipped_translator(chapter):
    assert any("npformer.learn.course.running" in code for code in texts_of(CHAPTERS[chapter], "code"))


def test_the_course_is_complete():
    assert list(CHAPTERS) == list(TITLES)
    for lessons in CHAPTERS.values():
        parts = [lesson.part for lesson in lessons]
        assert parts in ([None], list(range(parts[0] or 0, (parts[0] or 0) + len(parts))))
        assert parts[0] in (None, 0, 1)
    assert {exercise.chapter for exercise in EXERCISES} == set(TITLES) - {16, 25}


def test_the_lessons_that_the_explorer_names_for_its_steps_exist():
    steps = [step for table in (STEP_LINES, *VARIANTS.values()) for step in table.values()]
    named = {file for step in steps for file in (step.lesson, step.backward_lesson)}
    assert named <= {lesson.path.name for lesson in LESSONS}


def accidental_markup(prose):
    """Return the lines inside a paragraph that Markdown takes for a list, a quotation or a heading."""
    found = []
    text = re.sub(r"^```.*?^```$|<.*?>", "", prose, flags=re.DOTALL | re.MULTILINE)
    for passage in replace_formulas(text, lambda latex, display: "x").split("\n\n"):
        lines = [line for line in passage.split("\n") if line]
        signs = [re.match(r"([>+*-](?=\s|$)|\d+[.)](?=\s)|#+(?=\s)|[=-]+$)?", line)[0] for line in lines]
        kinds = [re.sub(r"\d+", "1", sign) for sign in signs]
        found += [line for line, kind in zip(lines, kinds, strict=True) if kind not in ("", kinds[0])]
    return found


@each_lesson
def test_no_line_of_its_prose_turns_into_a_list_or_a_quotation(lesson):
    assert [line for text in texts_of([lesson], "prose") for line in accidental_markup(text)] == []


@each_lesson
def test_commands_are_not_broken_across_lines(lesson):
    """A command or a line of Python that is broken across lines in the terminal would not run when copied."""
    out = lesson_console(console())
    for text in texts_of([lesson], "prose"):
        parts = [prose(part.text) for part in split_answers(text)]
        shown = "\n".join(line for part in parts for line in lines_of(out, part))
        for typed in re.findall(r"(?<!`)`(!?[^`]+)`(?!`)", text):
            assert " ".join(typed.split()) in shown


@each_lesson
def test_the_code_of_a_lesson_fits_a_terminal_of_100_columns(lesson):
    lines = "\n".join(texts_of([lesson], "code")).splitlines()
    assert [line for line in lines if len(line) > 97] == []
