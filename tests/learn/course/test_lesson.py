"""The percent format, and the search for a lesson."""

import pytest

from npformer.errors import UserError
from npformer.learn.course.lesson import (
    Cell,
    Lesson,
    Step,
    all_lessons,
    find_chapter,
    find_lesson,
    parse,
    steps_of,
)
from npformer.learn.course.prose import ProsePart, formulas, split_answers, split_formulas

SOURCE = """\
# %% [markdown]
# # 7 · A title
#
# *12 minutes to read.* Some `code` # and a sign.
#no space

# %%

x = 1

print(x)
# %% [markdown]
# %% named cell
y = 2
#%% [md]
# The end.
"""


def test_cells_have_their_kinds_texts_and_lines():
    assert parse(SOURCE) == [
        Cell("prose", "# 7 · A title\n\n*12 minutes to read.* Some `code` # and a sign.\nno space", 2),
        Cell("code", "x = 1\n\nprint(x)", 9),
        Cell("code", "y = 2", 14),
        Cell("prose", "The end.", 16),
    ]


def test_code_before_the_first_marker_is_a_cell():
    assert parse("import os\n# %%\nx = 1\n") == [Cell("code", "import os", 1), Cell("code", "x = 1", 3)]
    assert parse("") == []


def test_steps_are_prose_and_then_code():
    title, first, second, end = cells = parse(SOURCE)
    steps = steps_of(cells)
    assert [(step.prose, step.code) for step in steps] == [((title,), first), ((), second), ((end,), None)]


def test_tags_are_parsed_and_tagged_cells_run_with_the_cell_before():
    source = '# %% tags=["check"]\na = 1\n# %% named tags=["plot", "check"]\n\nb = 1\n\nc = 2\n# %%\nd = 1\n'
    first, second, third = parse(source)
    assert [cell.tags for cell in (first, second, third)] == [("check",), ("plot", "check"), ()]
    assert [cell.summary for cell in (first, second, third)] == ["check: 1 line", "plot, check: 2 lines", ""]
    prose = Cell("prose", "a", 1)
    assert steps_of([prose, first, second, third]) == [Step((prose,), first, (second,)), Step((), third)]
    assert steps_of([third, prose, first]) == [Step((), third), Step((prose,), first)]
    assert Step((), third, (first, second)).cells == (third, first, second)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a\n$$\nx\n$$\nb", [("text", "a"), ("latex", "x"), ("text", "b")]),
        ("$$x$$\n$$y$$", [("latex", "x"), ("latex", "y")]),
        ("```\n$$\nx\n$$\n```", [("text", "```\n$$\nx\n$$\n```")]),
        ("a $$ b", [("text", "a $$ b")]),
    ],
)
def test_formulas_on_their_own_lines_are_parts(text, parts):
    assert [(part.kind, part.text) for part in split_formulas(text)] == parts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from $a$ to $b_1$.", [("a", False), ("b_1", False)]),
        ("$a$\n\n  $$\nb\n$$", [("a", False), ("b", True)]),
        (r"5 \$ or 6 \$, `$x$`, ``a ` $x$``, 5 $ or 6$, $ x$, $x $, $x$5", []),
        ("```sh\n$ echo $HOME$\n```", []),
        ("a $x\n= y$ b", [("x\n= y", False)]),
        ("a $x\n\ny$ b", []),
        (r"$\text{5 \$}$", [(r"\text{5 \$}", False)]),
    ],
)
def test_formulas_are_found_outside_of_code(text, found):
    assert formulas(text) == found


def test_answers_are_parts():
    text = "**Question.** Why?\n\n<details><summary>Answer</summary>\nSo.\n\nAnd so.\n</details>\n\nGo on."
    assert split_answers(text) == [
        ProsePart("text", "**Question.** Why?"),
        ProsePart("answer", "So.\n\nAnd so.", "Answer"),
        ProsePart("text", "Go on."),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('# %% tags=["chek"]\nx = 1\n', 'line 1: unknown tags ["chek"]: write tags=["check"] or'),
        ("# %% tags=check\nx = 1\n", "line 1: unknown tags check"),
        ('# %% tags="check"\nx = 1\n', "line 1: unknown tags"),
        ("# %% [markdown]\n# fine\nx = 1\n", "line 3: prose must be comments"),
        ("# %%\nx = 1\n# %%\n\ny = (\n", "line 5: '(' was never closed"),
    ],
)
def test_a_malformed_file_names_its_line(source, message):
    with pytest.raises(UserError, match=r"08_bad\.py") as refused:
        parse(source, "08_bad.py")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "number", "chapter", "part", "words"),
    [("07_a_title", "7", 7, None, "a_title"), ("07_2_a_3_title", "7.2", 7, 2, "a_3_title")],
)
def test_the_name_of_a_lesson_has_its_number_and_its_opening_the_title(
    name, number, chapter, part, words, tmp_path
):
    lesson = Lesson(tmp_path / f"{name}.py")
    lesson.path.write_text(SOURCE.replace("# 7 ·", f"# {number} ·"), encoding="utf-8")
    assert (lesson.name, lesson.number, lesson.chapter, lesson.part) == (name, number, chapter, part)
    assert (lesson.words, lesson.title) == (words, "A title")
    lesson.path.write_text("x = 1\n", encoding="utf-8")
    assert Lesson(lesson.path).title == name


@pytest.fixture
def few(course):
    """Make a course of four lessons in three chapters, and files that are no lessons."""
    names = ("10_the_end", "09_2_the_middle", "09_1_the_beginning", "01_heads", "09_3", "notes")
    course({name: f"# %% [markdown]\n# # 0 · The {name}\n" for name in names})


def test_lessons_are_in_the_order_of_their_numbers(few):
    assert [lesson.number for lesson in all_lessons()] == ["1", "9.1", "9.2", "10"]


@pytest.mark.parametrize(
    ("which", "numbers"),
    [
        ("9", ["9.1", "9.2"]),
        ("09", ["9.1", "9.2"]),
        ("9.2", ["9.2"]),
        ("09.2", ["9.2"]),
        ("1", ["1"]),
        ("10", ["10"]),
        ("09_2_the_middle", ["9.2"]),
        ("middle", ["9.2"]),
        ("The Middle", ["9.2"]),
        ("09_2", ["9.2"]),
        ("heads", ["1"]),
        ("lessons/09_2_the_middle.py", ["9.2"]),
    ],
)
def test_lessons_are_found_by_number_and_by_name(which, numbers, few):
    assert [lesson.number for lesson in find_chapter(which)] == numbers
    assert find_lesson(which).number == numbers[0]


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("9.3", "unknown lesson '9.3': the nearest is 9.2 (The 09_2_the_middle); npformer lessons lists"),
        ("9.0", "the nearest is 9.1 "),
        ("1.1", "the nearest is 1 "),
        ("7", "the nearest is 9.1 "),
        ("99", "the nearest is 10 "),
        ("midle", "did you mean 9.2 (The 09_2_the_middle)?"),
        ("the", "several lessons are called 'the': 9.1 "),
        ("09_3", "npformer lessons lists them"),
        ("", "unknown lesson ''"),
        ("0.x", "unknown lesson '0.x': npformer lessons lists them"),
        ("/", "npformer lessons lists them"),
        ("_", "several lessons"),
    ],
)
def test_the_error_names_the_nearest_number_or_name(which, message, few):
    with pytest.raises(UserError) as refused:
        find_chapter(which)
    assert message in str(refused.value)
