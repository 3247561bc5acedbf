"""The lessons of the routes use the letters of docs/notation.md, and no others."""

import re

import pytest
from paths import ROOT

from npformer.learn.course.prose import formulas
from npformer.learn.course.routes import ENGINEERS, MAIN

PAGE = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
# such as (B, T, D) or (H·K, D) in a comment, and "T D" in the axes of a picture
SHAPE = re.compile(r"\(((?:[\dA-Z·+ ]+, ?)+[\dA-Z·+ ]*)\)|\"([A-Z](?: [A-Z1dₖᵥ]+)+)\"")
ALONE = re.compile(r"(?<![A-Za-z\\])d?([A-Z])(?![A-Za-z])")  # a capital, or its gradient, but no word
TEXT = re.compile(r"\\(?:mathrm|text|operatorname|mathbb)\{[^{}]*\}|(?<=W)(?:_\w)?\^\w|(?<=b)\^\w")
SOFTMAX = re.compile(r"(\w)'? *&?= *\\mathrm\{softmax\}\((\w)'?\)")
NOT_SHAPES = ("(Q, K, V)", "(A, B)")
LESSONS = list(dict.fromkeys([*MAIN.lessons, *ENGINEERS.lessons]))
on_routes = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def letters_of(title):
    """Return the capitals in the first column of a table, by the title of its section."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return set("".join(re.findall(r"^\| ([A-Z, ]+) \|", section, re.MULTILINE))) - {",", " "}


SIZES, ARRAYS = letters_of("Sizes"), letters_of("Arrays")
SAME = set(re.search(r"^\| ([A-Z, ]+) \| \| the sizes", PAGE, re.MULTILINE)[1]) | {"N"}  # a number of tokens


def shape_letters(text):
    """Return the letters of the shapes in a text."""
    for no_shape in NOT_SHAPES:
        text = text.replace(no_shape, "")
    return {letter for shape in SHAPE.findall(text) for letter in ALONE.findall(" ".join(shape))}


def formula_letters(text):
    """Return the capitals that stand alone in the formulas of a text, without the words in them."""
    return {letter for latex, _ in formulas(text) for letter in ALONE.findall(TEXT.sub(" ", latex))}


@on_routes
def test_its_shapes_have_the_letters_of_the_table(lesson):
    assert shape_letters("\n".join(cell.text for cell in lesson.cells)) - SIZES == set()


@on_routes
def test_its_formulas_have_the_letters_of_the_table(lesson):
    prose = "\n".join(cell.text for cell in lesson.cells if cell.kind == "prose")
    assert formula_letters(prose) - ARRAYS == set()


@on_routes
def test_no_letter_is_both_a_size_and_an_array(lesson):
    """K, V and P are keys, values and weights in a lesson with the queries Q, and sizes elsewhere."""
    prose = "\n".join(cell.text for cell in lesson.cells if cell.kind == "prose")
    found = formula_letters(prose)
    arrays = found & (SIZES & ARRAYS - SAME - (set() if "Q" in found else {"K", "P", "V"}))
    assert arrays & shape_letters("\n".join(cell.text for cell in lesson.cells)) == set()


def test_weights_are_the_softmax_of_scores():
    found = [
        (lesson.number, *pair)
        for lesson in LESSONS
        for cell in lesson.cells
        for latex, _ in formulas(cell.text)
        for pair in SOFTMAX.findall(latex)
    ]
    assert len(found) > 2
    assert [row for row in found if row[1:] != ("P", "A")] == []
