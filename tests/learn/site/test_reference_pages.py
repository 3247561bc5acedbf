"""The reference describes every public name with its types, shapes, errors and source."""

import inspect
import re
from importlib import import_module

import pytest
from site_documents import write_pages
from site_pages import dead_links, text_of

import npformer
from npformer.learn.site.reference_pages import assignment_of, packages, reference_pages
from npformer.learn.site.sphinx_extension import restructured

PUBLIC = [(package, name) for package in packages() for name in import_module(package).__all__]


@pytest.fixture(scope="module")
def documents():
    return {path: data.decode() for path, data in reference_pages().items()}


def test_every_public_name_has_an_entry(documents):
    assert {"npformer.nn", "npformer.functional", "npformer.models", "npformer.plots"} < {*packages()}
    assert {"npformer.interop", "npformer.checking"} < {*packages()}
    for package, name in PUBLIC:
        page = documents[f"reference/{package.removeprefix('npformer.')}.md"]
        assert (
            len(re.findall(rf"^\.\. (?:auto|py:)\w+:: (?:{package}::)?{name}$", page, re.MULTILINE)) == 1
        ), name
    overview = documents["reference/index.md"]
    assert all(name in overview for name in npformer.__all__)


def test_a_constant_has_its_assignment_and_the_comment_of_it():
    assert assignment_of("npformer.data", "PAD") == ("", "PAD, UNK, START, END = range(4)")
    comment, code = assignment_of("npformer.data", "Example")
    assert comment.startswith("An example is the token ids of a sentence and of its translation")
    assert code == "Example = tuple[Sequence[int], Sequence[int]]"
    comment, code = assignment_of("npformer.functional", "ACTIVATIONS")
    assert comment == "The pair of each activation, by name."
    assert code.startswith("ACTIVATIONS")


DOCSTRING = """Compute y with `softmax` of *Vaswani*, x_1 * x_2 and `a + b`.

    y = f(x)

    z = g(y)

Then follows |text|.

Args:
    x: The input of shape (N,),
        which may be long.

        Its end.
"""


def test_a_docstring_as_restructured_text():
    shown = "\n".join(restructured(DOCSTRING.splitlines()))
    assert shown.startswith(r"Compute y with `softmax` of *Vaswani*, x\_1 \* x\_2 and ``a + b``.")
    assert ".. code-block:: text\n\n    y = f(x)\n\n    z = g(y)\n\nThen follows \\|text\\|." in shown
    assert shown.count("code-block") == 1
    assert "\n    x: The input of shape (N,),\n        which may be long.\n" in shown


def entry(page, name):
    """Return the text of an entry of a page."""
    begin = page.index(f'id="{name}"')
    end = page.find('\n<dl class="py', begin)
    return text_of(page[begin : end if end > 0 else None])


def check_entries(folder, names):
    """Check that entries have a source, their arguments, and the errors and shapes of their docstrings."""
    for package, name in names:
        value = getattr(import_module(package), name)
        page = (folder / "reference" / f"{package.removeprefix('npformer.')}.html").read_text(
            encoding="utf-8"
        )
        assert page.count(f'id="{package}.{name}"') == 1, name
        if not inspect.isfunction(value):
            continue
        shown = entry(page, f"{package}.{name}")
        assert "[source]" in shown, name
        for parameter in inspect.signature(value).parameters:
            assert re.search(rf"\b{parameter}\b", shown), (name, parameter)
        doc = inspect.getdoc(value)
        shown = " ".join(shown.split())
        for shape in re.findall(r"\([^()]*, [A-Z](?:, [A-Z])*\)", doc):
            assert " ".join(shape.split()) in shown, (name, shape)
        for error in re.findall(r"^    (\w+Error): ", doc, re.MULTILINE):
            assert error in shown, (name, error)


def test_an_entry_has_its_arguments_shapes_errors_and_source(tmp_path, documents):
    """Build one small package. Every night, the pages of all packages are built."""
    some = {"reference/checking.md": documents["reference/checking.md"].encode()}
    assert write_pages(some, tmp_path) == []
    check_entries(tmp_path, [each for each in PUBLIC if each[0] == "npformer.checking"])
    page = (tmp_path / "reference" / "checking.html").read_text(encoding="utf-8")
    assert "_modules/npformer/checking/check.html#gradcheck" in page


@pytest.mark.nightly
def test_every_public_name_has_its_arguments_shapes_errors_and_source(tmp_path, documents):
    files = {path: text.encode() for path, text in documents.items()}
    assert write_pages(files, tmp_path) == []
    check_entries(tmp_path, PUBLIC)
    assert [each for each in dead_links(tmp_path) if "_modules" in "".join(each)] == []
    shown = entry(
        (tmp_path / "reference" / "functional.html").read_text(encoding="utf-8"),
        "npformer.functional.softmax",
    )
    assert "softmax(x: Array) → tuple[Array, Array]" in " ".join(shown.split())
