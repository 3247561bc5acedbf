"""Links to lessons, chapters and terms that the prose names."""

import pytest
from course import LESSONS

from npformer.learn.course.glossary import all_terms
from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.lesson_links import AMBIGUOUS, NAMED, forms_of, named_in, page_of

LATE = find_lesson("25")


def linked(text, lesson=LATE):
    """Return what a text names, as (text, kind, name)."""
    found = named_in(text, forms_of(all_terms(), lesson))
    return [(text[each.start : each.end], each.kind, each.name) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see lesson 4.4.", [("lesson 4.4", "lesson", "4.4")]),
        (
            "lessons 25, 2.1 and 5.1",
            [("25", "lesson", "25"), ("2.1", "lesson", "2.1"), ("5.1", "lesson", "5.1")],
        ),
        ("Chapter 4 says", [("Chapter 4", "chapter", "4")]),
        ("chapters 4–6", [("4", "chapter", "4"), ("6", "chapter", "6")]),
        ("第 4.4 课", [("第 4.4 课", "lesson", "4.4")]),
        ("attention weights", [("attention weights", "term", "attention weight")]),
        ("Layer\nnormalization", [("Layer\nnormalization", "term", "layer normalization")]),
        ("queries", [("queries", "term", "query")]),
        ("RoPE", [("RoPE", "term", "rotary positions (RoPE)")]),
        ("the length penalty", [("length penalty", "term", "length normalization, length penalty")]),
        ("softmaxed and pre-softmax", []),
    ],
)
def test_what_a_text_names(text, expected):
    assert linked(text) == expected


def test_the_file_of_a_lesson_is_left_out_behind_its_number():
    assert NAMED.sub(r"\1", "see lesson 4.4, `04_4_query_key_and_value`.") == "see lesson 4.4."
    assert NAMED.sub(r"\1", "（第 4.4 课，`04_4_query_key_and_value`）") == "（第 4.4 课）"
    assert NAMED.sub(r"\1", "Lesson 5.3\n(`05_3_what_the_scale_does`)") == "Lesson 5.3"


def test_a_word_with_an_everyday_meaning_is_a_term_from_its_lesson_on():
    assert linked("the value", find_lesson("0.1")) == []
    assert linked("the value", find_lesson("4.4")) == [("value", "term", "value")]
    assert {term.name for term in all_terms()} >= AMBIGUOUS


def test_every_lesson_has_a_page_of_its_own():
    pages = [page_of(lesson) for lesson in LESSONS]
    assert len(set(pages)) == len(pages)
    assert {"lessons/00_1.html", "lessons/01_1.html", "lessons/05_1.html", "lessons/25.html"} <= set(pages)
