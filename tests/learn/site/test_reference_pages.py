"""The reference describes every public name with its types, and its links lead to names that are there."""

import inspect
import re
from importlib import import_module
from urllib.parse import urldefrag, urljoin

import pytest
from course import LESSONS
from parsed_page import ParsedPage
from site_pages import text_of

import npformer
from npformer.learn.site import definitions, docstrings
from npformer.learn.site.lesson_links import page_of
from npformer.learn.site.names import Names

PACKAGES = ("checking", "data", "explorer", "functional", "generation", "models", "nn", "plots")
PACKAGES += ("pretrained", "training")


@pytest.fixture(scope="module")
def pages(reference):
    """Return the pages by their paths."""
    return {page.path: page for page in reference}


def entry(page, name):
    """Return the part of a page about one name."""
    begin = page.body.index(f'<h3 id="{name}">')
    return page.body[begin : page.body.index("</section>", begin)]


def test_there_is_a_page_for_each_package_and_an_entry_for_each_name(pages):
    assert list(pages) == ["reference/index.html", *(f"reference/{package}.html" for package in PACKAGES)]
    for package in PACKAGES:
        for name in import_module(f"npformer.{package}").__all__:
            assert pages[f"reference/{package}.html"].body.count(f'<h3 id="{name}">') == 1, (package, name)
    shown = text_of(pages["reference/index.html"].body)
    assert all(name in shown for name in npformer.__all__)
    assert sum(len(page.body.encode()) for page in pages.values()) < 3_000_000


def test_every_link_leads_to_an_id_or_to_a_lesson(pages):
    lessons = {page_of(lesson) for lesson in LESSONS}
    ids = {path: {*ParsedPage(page.body).ids, ""} for path, page in pages.items()}
    links = [
        (path, *urldefrag(urljoin(path, address)))
        for path, page in pages.items()
        for address in re.findall(r'href="([^"]*)"', page.body)
    ]
    assert len(links) > 1200
    wrong = [link for link in links if link[1] not in lessons and link[2] not in ids.get(link[1], ())]
    assert wrong == []


def test_signatures_show_types_and_defaults(pages):
    page = pages["reference/functional.html"]
    assert "softmax(x: Array) → tuple[Array, Array]" in text_of(entry(page, "softmax"))
    assert "mask: Array | None = None," in text_of(entry(page, "attention"))
    assert "rng: Generator | None" in text_of(entry(page, "dropout"))
    assert 'id="causal_mask"' not in page.body, "it is not exported"


def test_the_arguments_are_those_of_the_function(pages):
    """Compare the signatures, which are read from the files, with those of the imported functions."""
    for package in PACKAGES:
        module = import_module(f"npformer.{package}")
        for name in filter(lambda name: inspect.isfunction(getattr(module, name)), module.__all__):
            node = definitions.find(f"npformer.{package}", name).node
            shown = [each.name.lstrip("*") for each in definitions.arguments(node)]
            actual = list(inspect.signature(getattr(module, name)).parameters)
            assert [each for each in shown if each and each != "/"] == actual


def test_an_entry_has_the_sections_of_the_docstring_as_definition_lists(pages):
    shown = entry(pages["reference/functional.html"], "attention")
    assert "<dt>Returns</dt><dd><p>y, of shape (..., T, L), and the cache.</p></dd>" in shown
    assert "<dt><code>p</code> " in shown
    assert "The dropout probability of the weights." in shown
    assert '<dt><a href="index.html#UserError"><code>UserError</code></a></dt>' in shown
    assert '<a href="../lessons/05_1.html">lesson 5.1, Scaled dot-product attention</a>' in shown


def test_classes_show_their_fields_members_and_bases(pages):
    body = pages["reference/training.html"].body
    assert "The number of updates. Give either steps or epochs" in text_of(body)
    assert 'id="TrainingConfig.total_steps"' in body
    norm = pages["reference/nn.html"].body
    assert 'Inherits from <a href="#Module"><code>Module</code></a>' in norm
    assert 'id="Module.__call__"' in norm
    assert 'id="Module._' not in norm.replace('id="Module.__call__"', "")


def test_an_entry_has_its_source_folded(pages):
    shown = text_of(entry(pages["reference/functional.html"], "softmax_backward"))
    line = inspect.getsourcelines(npformer.functional.softmax_backward)[1]
    assert f"Source of softmax_backward: npformer/functional/softmax.py, line {line}" in shown
    assert "return y * (dy - (dy * y).sum(-1, keepdims=True))" in shown


def test_constants_and_aliases_show_their_values(pages):
    assert "PAD, UNK, START, END = range(4)" in text_of(entry(pages["reference/data.html"], "PAD"))
    event = entry(pages["reference/training.html"], "Event")
    assert '<a href="#Started">Started</a> | <a href="#Stepped">Stepped</a>' in event


# Docstrings

EXAMPLE = """Compute y with `softmax` of *Vaswani*.

    y = f(x)

    z = g(y)

Then follows text. See hard_attend:

- one item
  that continues
- two

Shapes: x (N,) -> y (N,).

Args:
    x: The input: of shape (N,),
        which may be long.
    y, z: Two others.

Returns:
    y, and the cache.

Raises:
    UserError: If x is < 0.

Source: Vaswani et al. 2017.
"""


def test_a_docstring_is_split_into_its_parts():
    parsed = docstrings.parse(EXAMPLE)
    assert parsed.summary == "Compute y with `softmax` of *Vaswani*."
    titles = [section.title for section in parsed.sections]
    assert titles == ["Args", "Returns", "Raises", "Source"]
    assert parsed.sections[0].entries == [
        ("x", "The input: of shape (N,), which may be long."),
        ("y, z", "Two others."),
    ]


def test_a_docstring_as_html():
    parsed, link = docstrings.parse(EXAMPLE), Names().linker("functional")
    text = docstrings.blocks(parsed.text, link)
    assert '<pre class="code">y = f(x)\n\nz = g(y)</pre>' in text
    assert '<a href="#hard_attend"><code>hard_attend</code></a>' in text
    assert "<ul><li>one item that continues</li><li>two</li></ul>" in text
    assert "<p>Shapes: x (N,) -&gt; y (N,).</p>" in text
    assert docstrings.inline(parsed.summary, link) == (
        'Compute y with <a href="#softmax"><code>softmax</code></a> of <em>Vaswani</em>.'
    )
    shown = docstrings.sections(parsed, link, {"x": "Array"})
    assert '<dt><code>x</code> <span class="type">Array</span></dt><dd>The input' in shown
    assert "If x is &lt; 0." in shown


def test_the_same_name_in_two_packages_means_that_of_the_page():
    names = Names()
    assert names.linker("plots")("attention") == "#attention"
    assert names.linker("nn")("attention") == "functional.html#attention"
    assert names.linker("nn")("plots.attention") == "plots.html#attention"
    assert names.linker("functional")("npformer.nn") == "nn.html"
    assert names.linker("nn")("no_such_name") is None
    assert names.linker("nn")("Module.zero_grad") == "#Module.zero_grad"
    assert names.linker("functional")("Module.zero_grad") == "nn.html#Module.zero_grad"
    assert names.linker("nn")("Module.no_such_method") is None
