"""The percent format, and the search for a lesson."""

import pytest

from npformer.errors import UserError
from npformer.learn.course import lesson as lesson_module
from npformer.learn.course.lesson import Cell, Lesson, all_lessons, find_lesson, parse, steps_of

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
    title, first, second, end = parse(SOURCE)
    steps = steps_of([title, first, second, end])
    assert [(step.prose, step.code) for step in steps] == [((title,), first), ((), second), ((end,), None)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("# %% [markdown]\n# fine\nx = 1\n", "line 3: prose must be comments"),
        ("# %%\nx = 1\n# %%\n\ny = (\n", "line 5: '(' was never closed"),
    ],
)
def test_a_malformed_file_names_its_line(source, message):
    with pytest.raises(UserError, match=r"08_bad\.py") as refused:
        parse(source, "08_bad.py")
    assert message in str(refused.value)


def test_title_number_and_minutes(tmp_path):
    path = tmp_path / "07_a_title.py"
    path.write_text(SOURCE, encoding="utf-8")
    lesson = Lesson(path)
    assert (lesson.number, lesson.name, lesson.title, lesson.minutes) == (7, "07_a_title", "A title", 12)
    path.write_text("x = 1\n", encoding="utf-8")
    assert (Lesson(path).title, Lesson(path).minutes) == ("07_a_title", None)


@pytest.mark.parametrize("which", ["5", "05", "05_scaled_dot_product_attention", "dot-product", "Scaled dot"])
def test_a_lesson_is_found_by_number_and_by_name(which):
    assert find_lesson(which).number == 5


@pytest.mark.parametrize("which", ["lessons/05_scaled_dot_product_attention.py"])
def test_a_lesson_is_found_by_its_file(which):
    assert find_lesson(which).number == 5


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("99", "the nearest is"),
        ("attentoin", "did you mean 4 (Attention as a lookup), 5 (Scaled"),
        ("xyz", "npformer lessons lists them"),
        ("", "unknown lesson ''"),
        ("/", "npformer lessons lists them"),
        ("_", "several lessons"),
    ],
)
def test_an_unknown_lesson_suggests_the_nearest(which, message):
    with pytest.raises(UserError) as refused:
        find_lesson(which)
    assert message in str(refused.value)


def test_missing_lessons_are_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(lesson_module, "CHECKOUT", tmp_path)
    monkeypatch.setattr(lesson_module, "INSTALLED", tmp_path)
    with pytest.raises(UserError, match="no lessons"):
        all_lessons()
