"""The reference describes every public name with its types, shapes, errors and source."""

import inspect
import re
from importlib import import_module

import pytest
from site_documents import write_pages
from site_pages import dead_links, text_of

import npformer
from npformer.learn.site.reference_pages import packages, reference_pages

PUBLIC = [(package, name) for package in packages() for name in import_module(package).__all__]


@pytest.fixture(scope="module")
def documents():
    return {path: data.decode() for path, data in reference_pages().items()}


def test_every_public_name_has_an_entry(documents):
    assert {"npformer.nn", "npformer.functional", "npformer.models", "npformer.plots"} < {*packages()}
    assert {"npformer.interop", "npformer.checking"} < {*packages()}
    for package, name in PUBLIC:
        page = documents[f"reference/{package.removeprefix('npformer.')}.md"]
        assert len(re.findall(rf"^\.\. auto\w+:: {package}\.{name}$", page, re.MULTILINE)) == 1, name
    overview = documents["reference/index.md"]
    assert {*npformer.__all__} <= {*re.findall(r"\w+", overview)}


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
    assert not re.search(r"<dt class=\"sig[^>]*>(?:(?!</dt>).)*<d[ld]\b", page, re.DOTALL)  # lists in a head
    assert "Explained in" not in page  # the site has no lesson


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
