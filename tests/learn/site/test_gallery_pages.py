"""The gallery shows every figure with its caption, its lessons and its code, in few bytes."""

import re

import pytest
from course import LESSONS

from npformer.learn.course.lesson import find_lesson
from npformer.learn.figures import Studio, all_entries, draw, find_entry
from npformer.learn.language.sources import CHECKOUT
from npformer.learn.site.gallery_pages import gallery_pages
from npformer.learn.site.markdown import text

SOME = ("F14", "F29", "F47", "F51")  # F29 and F51 show a trained model, and F51 is animated


@pytest.fixture(scope="module")
def files():
    """Return some documents of the gallery, and their pictures."""
    return gallery_pages([find_entry(id) for id in SOME])


def page(files, id):
    return files[f"gallery/{id}.md"].decode()


def test_the_pages_and_their_pictures(files):
    assert {path for path in files if path.endswith(".md")} == {
        "gallery.md",
        *(f"gallery/{id}.md" for id in SOME),
    }
    for id in SOME:
        assert page(files, id).splitlines()[4] == f"# {id}: {text(find_entry(id).title)}"
        assert f"](/gallery/{id}.md)" in files["gallery.md"].decode()
    assert files["gallery/F14.svg"].startswith(b"<?xml")
    assert files["gallery/F51.gif"][:3] == b"GIF"
    assert "<summary>Show the animation</summary>" in page(files, "F51")


def test_a_drawn_figure_has_its_caption_and_the_code_that_draws_it(files):
    drawing = draw("F14", Studio())
    assert text(drawing.caption) in page(files, "F14")
    code = re.search(r":class: python\n\n(.*?)\n`````", page(files, "F14"), re.DOTALL)[1]
    assert "sentence='I am a student'" in code
    names = {}
    exec(code, names)
    assert names["drawing"].caption == drawing.caption


def test_a_figure_of_a_trained_model_is_that_of_the_checkout(files):
    assert files["gallery/F29.png"] == (CHECKOUT / "figures" / "F29.png").read_bytes()
    assert "this head attends most to “animal”" in page(files, "F29")


def test_without_its_picture_a_figure_has_its_command(tmp_path):
    files = gallery_pages([find_entry("F29")], stored=tmp_path)
    assert files.keys() == {"gallery.md", "gallery/F29.md"}
    assert "its picture is not part of this site" in page(files, "F29")
    assert "npformer figures F29" in page(files, "F29")


def test_every_figure_has_a_lesson(files):
    known = {lesson.path for lesson in LESSONS}
    for entry in all_entries():
        assert entry.lessons, entry.id
        assert {find_lesson(number).path for number in entry.lessons} <= known
    assert "](/lessons/06_1.md)" in page(files, "F14")


def test_a_page_names_its_document_and_the_line_of_its_code(files):
    line = find_entry("F14").function.__code__.co_firstlineno
    assert (
        "Document: *一步步解析Attention is All You Need!*. Numbers from: tensors of a forward pass."
        in page(files, "F14")
    )
    assert f"`npformer/learn/figures/f10_to_f17_masked_attention.py`, line {line}." in page(files, "F14")


@pytest.mark.nightly
def test_the_whole_gallery_is_small():
    files = gallery_pages()
    assert {f"gallery/{entry.id}.md" for entry in all_entries()} <= files.keys()
    assert sum(map(len, files.values())) < 12_000_000
