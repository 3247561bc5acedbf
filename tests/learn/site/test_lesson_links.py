"""Links to lessons and chapters that the prose names."""

import pytest
from course import LESSONS

from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.lesson_links import file_of, link_lessons
from npformer.learn.site.lesson_pages import names_of

NAMES = names_of(LESSONS)
OWN = find_lesson("5.2")
CASES = {
    "see lesson 4.4, <code>04_4_query_key_and_value</code>.": 'see <a href="04_4.html">lesson 4.4</a>.',
    "Lesson 5.3\n(<code>05_3_what_the_scale_does</code>)": '<a href="05_3.html">Lesson 5.3</a>',
    "lessons 25, 2.1 and 5.1": (
        'lessons <a href="25.html">25</a>, <a href="02_1.html">2.1</a> and <a href="05_1.html">5.1</a>'
    ),
    "this is lesson 5.2 (<code>05_2_the_backward_pass_of_attention</code>)": "this is lesson 5.2",
    "<code>lesson 4.4</code> and <h1>lesson 4.4</h1>": "<code>lesson 4.4</code> and <h1>lesson 4.4</h1>",
    "<code>22_9_unknown</code>": "<code>22_9_unknown</code>",
    "lesson 99": "lesson 99",
    "Chapter 4 says": 'Chapter <a href="index.html#chapter-4" title="Attention as a lookup">4</a> says',
    "chapter 99": "chapter 99",
}


@pytest.mark.parametrize("html", CASES)
def test_a_lesson_is_linked_wherever_it_is_named(html):
    assert link_lessons(html, NAMES, OWN) == CASES[html]


def test_every_lesson_has_a_page_of_its_own():
    files = [file_of(lesson) for lesson in LESSONS]
    assert len(set(files)) == len(files)
    assert {"00_1.html", "01_1.html", "05_1.html", "25.html"} <= set(files)
