"""Links to lessons, chapters and terms that the prose names."""

import re

import pytest
from course import LESSONS

from npformer.learn.course.glossary import all_terms
from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.lesson_links import AMBIGUOUS, NAMED, document_of, linker

LATE = find_lesson("25")


def linked(text, lesson=LATE):
    """Return a text with its links, where those to lessons and chapters have the name of their document."""
    return re.sub(r"\(/lessons/([^)]*)\.md\)", r"(\1)", linker(lesson)(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see lesson 4.4.", "see [lesson 4.4](04_4)."),
        ("lessons 25, 2.1 and 5.1", "lessons 25, [2.1](02_1) and [5.1](05_1)"),  # 25 is the lesson itself
        ("Chapter 4 says", "[Chapter 4](chapter_04) says"),
        ("chapters 4–6", "chapters [4](chapter_04)–[6](chapter_06)"),
        ("第 4.4 课", "[第 4.4 课](04_4)"),
        ("attention weights", "{term}`attention weights <attention weight>`"),
        ("Layer\nnormalization", "{term}`Layer\nnormalization <layer normalization>`"),
        ("queries and a query", "{term}`queries <query>` and a query"),  # the first use of a term
        ("RoPE", "{term}`RoPE <rotary positions (RoPE)>`"),
        ("the length penalty", "the {term}`length penalty <length normalization, length penalty>`"),
        ("softmaxed and pre-softmax", "softmaxed and pre-softmax"),
        ("*图解Attention*, *The softmax*", "*图解Attention*, *The softmax*"),
        ("`softmax` $softmax$ [softmax](a)\n# lesson 4.4", "`softmax` $softmax$ [softmax](a)\n# lesson 4.4"),
    ],
)
def test_what_a_text_names(text, expected):
    assert linked(text) == expected


def test_the_file_of_a_lesson_is_left_out_behind_its_number():
    assert NAMED.sub(r"\1", "see lesson 4.4, `04_4_query_key_and_value`.") == "see lesson 4.4."
    assert NAMED.sub(r"\1", "（第 4.4 课，`04_4_query_key_and_value`）") == "（第 4.4 课）"
    assert NAMED.sub(r"\1", "Lesson 5.3\n(`05_3_what_the_scale_does`)") == "Lesson 5.3"


def test_a_word_with_an_everyday_meaning_is_a_term_from_its_lesson_on():
    assert linked("the value", find_lesson("0.1")) == "the value"
    assert linked("the value", find_lesson("4.4")) == "the {term}`value <value>`"
    assert {term.name for term in all_terms()} >= AMBIGUOUS


def test_every_lesson_has_a_page_of_its_own():
    pages = [document_of(lesson) for lesson in LESSONS]
    assert len(set(pages)) == len(pages)
    assert {"lessons/00_1", "lessons/01_1", "lessons/05_1", "lessons/25"} <= set(pages)
