"""The gallery shows every figure with its caption, its lessons and its code, in few bytes."""

import re

import pytest
from course import LESSONS
from site_pages import text_of

from npformer.learn.figures import Studio, all_entries, draw, find_entry
from npformer.learn.site.gallery_pages import CHECKOUT, gallery_pages, lessons_of
from npformer.learn.site.images import size_of
from npformer.learn.site.lesson_links import page_of
from npformer.plots import save

SOME = ("F14", "F29", "F47", "F51")  # F29 and F51 show a trained model, and F51 is animated


@pytest.fixture(scope="module")
def pages():
    """Return some pages of the gallery by their paths."""
    return {page.path: page for page in gallery_pages([find_entry(id) for id in SOME])}


def test_the_pages_and_their_pictures(pages):
    assert list(pages) == ["gallery.html", *(f"gallery/{id}.html" for id in SOME)]
    for id in SOME:
        page = pages[f"gallery/{id}.html"]
        assert page.title == f"{id}: {find_entry(id).title}"
        assert page.assets[f"gallery/{id}.png"][:4] == b"\x89PNG"
        assert f'<a href="gallery/{id}.html">' in pages["gallery.html"].body
        width, height = size_of(page.assets[f"gallery/{id}.png"])
        assert f'<img src="{id}.png" width="{width}" height="{height}"' in page.body
    assert pages["gallery/F51.html"].assets["gallery/F51.gif"][:3] == b"GIF"
    assert "<details><summary>Show the animation</summary>" in pages["gallery/F51.html"].body


def test_a_drawn_figure_has_its_caption_its_size_and_the_code_that_draws_it(pages, tmp_path):
    page, drawing = pages["gallery/F14.html"], draw("F14", Studio())
    assert drawing.caption in text_of(page.body)
    full = save(drawing.figure, tmp_path / "full.png").read_bytes()
    small = page.assets["gallery/F14.png"]
    assert size_of(small) == size_of(full)
    assert len(small) < len(full) / 2
    code = text_of(re.search(r'<div class="code">(.*?)</div>', page.body, re.DOTALL)[1])
    assert 'sentence="I am a student"' in code
    names = {}
    exec(code, names)
    assert names["drawing"].caption == drawing.caption


def test_a_figure_of_a_trained_model_is_that_of_the_checkout(pages):
    page = pages["gallery/F29.html"]
    assert page.assets["gallery/F29.png"] == (CHECKOUT / "F29.png").read_bytes()
    assert "this head attends most to “animal”" in text_of(page.body)
    assert "\\" not in re.search("<figcaption>(.*?)</figcaption>", page.body)[1]


def test_without_its_picture_a_figure_has_its_command(tmp_path):
    entries = [find_entry("F29")]
    overview, page = gallery_pages(entries, stored=tmp_path)
    assert "<img" not in overview.body + page.body
    assert "its picture is not part of this site" in page.body
    assert "npformer figures F29" in page.body
    assert not any(path.endswith(".png") for path in page.assets)


def test_every_figure_has_a_lesson(pages):
    known = {lesson.path for lesson in LESSONS}
    for entry in all_entries():
        lessons = lessons_of(entry.id)
        assert lessons, entry.id
        assert {lesson.path for lesson in lessons} <= known
    assert page_of(lessons_of("F14")[0]) == "lessons/06_1.html"
    assert '<a href="../lessons/06_1.html">6.1 Masks' in pages["gallery/F14.html"].body


def test_a_page_names_its_document_and_the_line_of_its_code(pages):
    shown = text_of(pages["gallery/F14.html"].body)
    assert "Document: 一步步解析Attention is All You Need!. Numbers from: tensors of a forward pass." in shown
    line = find_entry("F14").function.__code__.co_firstlineno
    assert f"npformer/learn/figures/f10_to_f17_masked_attention.py, line {line}." in shown
    assert '<cite lang="zh">' in pages["gallery/F14.html"].body


@pytest.mark.nightly
def test_the_whole_gallery_is_small():
    assets = {path: data for page in gallery_pages() for path, data in page.assets.items()}
    assert {f"gallery/{entry.id}.png" for entry in all_entries()} <= assets.keys()
    assert sum(map(len, assets.values())) < 8_000_000
