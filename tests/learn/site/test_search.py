"""The search: its index in Python, and its ranking and its page in Chromium, opened from a folder."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from course import LESSONS
from search_questions import HELD_OUT, MISSPELT, QUESTIONS
from site_documents import lesson_documents, write_pages
from site_pages import AXE, SCHEMES, WIDTHS, check_axe, open_tab

from npformer.learn.site.course_pages import overview_pages
from npformer.learn.site.reference_pages import reference_pages

words_of_search = pytest.importorskip("npformer.learn.site.search_index").words_of_search
browser = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write the search, and pages of all lessons without their outputs, of the glossary and the reference."""
    folder = tmp_path_factory.mktemp("search")
    glossary = {"glossary.md": overview_pages(LESSONS, (), has_explorer=False)["glossary.md"]}
    write_pages(lesson_documents() | reference_pages() | glossary, folder)
    return folder


# The index

PAGE = """# A `title`

First text.

## Part one

Text of $\\sqrt{d_k}$ and **bo**ld.

```python
x = softmax(q @ k)  # softmax
```

```{code-block} text
:class: output

hidden
```

```{glossary}
A term
    Its *meaning* </script> 注意力
```
"""


def test_the_index_is_a_script_with_each_page_split_at_its_headings(tmp_path):
    assert write_pages({"lessons/a.md": PAGE.encode()}, tmp_path) == []
    script = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    assert script.startswith("Search.setIndex({")
    assert "</script>" not in script
    index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(");\n"))
    names = ("title", "id", "heading", "text", "code")
    parts = [tuple(map(each.get, names)) for each in index["parts"] if each["page"] == "lessons/a"]
    assert parts == [
        ("A title", "a-title", "A title", "First text.", ""),
        ("A title", "part-one", "Part one", "Text of √dₖ and bold.", "softmax"),
        ("A title", "term-A-term", "A term", "Its meaning </script> 注意力", ""),
    ]
    assert index["synonyms"]["rope"] == words_of_search()[1]["rope"]
    assert index["synonyms"]["注意力"] == "attention"
    assert "the" in index["stop"]


def test_the_page_of_the_search_has_its_scripts(small_site, read):
    scripts = re.findall(r'<script src="([^"?]*)[^"]*"></script>', read("search.html"))
    assert scripts[-4:] == [
        "_static/language_data.js",
        "searchindex.js",
        "_static/vendor/minisearch.js",
        "_static/search.js",
    ]
    assert all((small_site / each).exists() for each in scripts)


def test_the_tables_of_words_and_questions():
    stop, synonyms = words_of_search()
    assert len(set(stop)) == len(stop) > 100
    assert all(phrase.strip() for value in synonyms.values() for phrase in value.split(","))
    assert len(QUESTIONS) >= 30
    assert len(HELD_OUT) >= 15
    assert not QUESTIONS.keys() & HELD_OUT.keys()


@browser
def test_the_index_has_every_page_and_is_small(folder):
    script = (folder / "searchindex.js").read_text(encoding="utf-8")
    assert len(script) < 3_000_000
    right = {page for table in (QUESTIONS, HELD_OUT) for pages in table.values() for page in pages}
    for page in right:
        assert page.startswith("zoo/") or f'"{page.removesuffix(".html")}",' in script, page


# The ranking


@pytest.fixture(scope="module")
def tab(chromium, folder):
    """Yield a tab with the page of the search. It must write no error and load only files of the folder."""
    with open_tab(chromium, folder, "light", 1280) as tab:
        show_search(tab, folder)
        yield tab


def show_search(tab, folder):
    """Open the page of the search."""
    tab.goto((folder / "search.html").as_uri())


def search(tab, questions, most=3):
    """Return the paths of the best pages for each question."""
    code = "(questions) => questions.map((each) => search(each).map(({ page }) => page + '.html'))"
    found = tab.evaluate(code, list(questions))
    return {question: pages[:most] for question, pages in zip(questions, found, strict=True)}


def misses(tab, table):
    """Return the questions whose right page is not among the first three."""
    return {
        question: found for question, found in search(tab, table).items() if not table[question] & {*found}
    }


@browser
def test_questions_lead_to_the_right_page(tab):
    assert misses(tab, QUESTIONS) == {}


@browser
def test_questions_that_did_not_guide_the_ranking_lead_to_the_right_page(tab):
    assert len(misses(tab, HELD_OUT)) <= 1, misses(tab, HELD_OUT)


@browser
def test_a_word_may_have_one_wrong_letter(tab):
    assert misses(tab, MISSPELT) == {}


@browser
def test_an_unknown_word_finds_nothing(tab):
    assert search(tab, ["qwertzuiop"]) == {"qwertzuiop": []}
    assert search(tab, ["", "  ", "?!"]) == {"": [], "  ": [], "?!": []}


@browser
def test_the_synonyms_are_words_of_the_pages(tab):
    """Check that no row of the table is without effect."""
    code = """() => {
        const known = new Set(INDEX.parts.flatMap((part) => termsOf(Object.values(part).join(" "))));
        return SYNONYMS.flatMap(([, same]) => same).filter((term) => !known.has(term));
    }"""
    assert tab.evaluate(code) == []


@browser
def test_the_forms_of_a_word_have_one_stem_and_different_words_have_different_ones(tab):
    forms = ["mask masks masked masking", "gradient gradients", "query queries", "loss losses"]
    forms += ["scale scaled scaling scales", "embed embedding embeddings embedded"]
    for words in [*forms, "normalize normalization normalized"]:
        assert len(set(tab.evaluate("(words) => words.map(stem)", words.split()))) == 1, words
    different = "encoder encoding decoder bias base norm normal head key loss lose"
    assert len(set(tab.evaluate("(words) => words.map(stem)", different.split()))) == 11


@browser
def test_compounds_are_found_in_their_parts_and_as_a_whole(tab):
    words = tab.evaluate('wordsOf("LayerNorm layer_norm feed-forward √dₖ 注意力")')
    expected = "layer norm layernorm layer norm layernorm feed forward feedforward sqrt dk 注意力"
    assert words == expected.split()


# The page


@pytest.fixture
def results(tab, folder):
    """Return a function that opens the page of the search with a question, and returns its results."""

    def open_search(question):
        tab.goto(f"{(folder / 'search.html').as_uri()}?q={question}")
        tab.wait_for_function("document.querySelector('.search-summary')?.innerText")
        return tab.locator("#search-results li")

    yield open_search
    show_search(tab, folder)


@browser
def test_results_lead_to_places_that_exist_and_show_the_words(results, folder, tab):
    found = results("label%20smoothing")
    assert tab.input_value(".sidebar-search") == "label smoothing"
    assert found.count() == 20
    for link in tab.eval_on_selector_all("#search-results a", "(links) => links.map(({ href }) => href)"):
        address, anchor = urldefrag(link)
        text = Path(unquote(urlsplit(address).path)).read_text(encoding="utf-8")
        assert not anchor or f'id="{unquote(anchor)}"' in text, link
    assert found.first.inner_text().startswith("12.3 · Label smoothing and tied weights")
    assert found.first.locator(".highlighted").count() >= 2
    assert "softmax" in results("sofmax").first.inner_text().lower()


@browser
def test_a_question_without_results_and_one_with_markup(results, tab):
    assert results("qwertzuiop").count() == 0
    assert "did not match any documents" in tab.inner_text(".search-summary")
    assert results("%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20softmax").count() > 0
    assert tab.locator("[role=main] img").count() == 0


@browser
def test_the_box_of_every_page_leads_to_the_search(tab, folder):
    tab.goto((folder / "lessons" / "05_1.html").as_uri())
    tab.fill(".sidebar-search", "beam search")
    tab.press(".sidebar-search", "Enter")
    tab.wait_for_selector("#search-results li")
    assert tab.url.startswith(f"{(folder / 'search.html').as_uri()}?q=beam+search")
    assert tab.input_value(".sidebar-search") == "beam search"
    show_search(tab, folder)


@browser
@pytest.mark.skipif(not AXE, reason="NPFORMER_AXE is not the path of axe.min.js: npm install axe-core")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", ["search.html?q=mask", "reference/index.html", "reference/nn.html"])
def test_axe_finds_nothing(chromium, folder, path, width, scheme):
    with open_tab(chromium, folder, scheme, width) as tab:
        check_axe(tab, [f"{folder.as_uri()}/{path}"])
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
