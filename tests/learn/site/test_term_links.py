"""Links from the first use of a term on a page to the glossary."""

import pytest

from npformer.learn.course.glossary import all_terms
from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.term_links import AMBIGUOUS, id_of, link_terms

LATE = find_lesson("25")


def linked(html, lesson=LATE):
    return link_terms(html, lesson, "../glossary.html")


def link(term, text):
    return f'<a class="term" href="../glossary.html#{term}">{text}</a>'


def test_only_the_first_use_is_linked():
    assert (
        linked("<p>A softmax, and the softmax.</p>")
        == f"<p>A {link('softmax', 'softmax')}, and the softmax.</p>"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("attention weights", link("attention-weight", "attention weights")),
        ("Layer\nnormalization", link("layer-normalization", "Layer\nnormalization")),
        ("queries", link("query", "queries")),
        ("RoPE", link("rotary-positions-rope", "RoPE")),
        ("the length penalty", f"the {link('length-normalization-length-penalty', 'length penalty')}"),
        ("softmaxed and pre-softmax", "softmaxed and pre-softmax"),
    ],
)
def test_forms_of_a_term(text, expected):
    assert linked(text) == expected


def test_code_formulas_headings_and_links_stay_as_they_are():
    html = "<h2>softmax</h2><code>softmax</code><a href='x'>softmax</a><math>softmax</math><div>softmax</div>"
    assert linked(html) == html


def test_a_word_with_an_everyday_meaning_is_linked_from_its_lesson_on():
    assert linked("the value", find_lesson("0.1")) == "the value"
    assert linked("the value", find_lesson("4.4")) == f"the {link('value', 'value')}"


def test_the_ids_differ_and_the_ambiguous_words_are_terms():
    terms = all_terms()
    assert len({id_of(term) for term in terms}) == len(terms)
    assert {term.name for term in terms} >= AMBIGUOUS
