"""The guides of docs/ as documents."""

import re

from course import LESSONS

from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.guide_pages import guide_pages

FILES = {
    "README.md": "# Documentation\n\n[first](start-here.md), [all](../lessons/README.md), "
    "[g](../figures/README.md)\n",
    "start-here.md": "# What to read first\n\n## Teachers\n\n"
    "[5.1](../lessons/05_1_scaled_dot_product_attention.py#L1)"
    " [commands](commands.md#look) [code](../npformer/data) [here](#teachers) [web](https://example.org)\n",
    "commands.md": "# Commands\n\n<!-- a mark -->\n## Look\n\n![A picture](../figures/a.png) and $x^2$\n",
}


def guides(tmp_path, others=("lessons/index",)):
    for name, text in FILES.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    (tmp_path / "figures").mkdir(exist_ok=True)
    (tmp_path / "figures" / "a.png").write_bytes(b"png")
    return guide_pages([find_lesson("5.1")], others, tmp_path)


def test_the_guides_and_their_links(tmp_path):
    files = {path: data.decode() for path, data in guides(tmp_path).items()}
    assert files.keys() == {"docs/index.md", "docs/commands.md", "start-here.md", "figures/a.png"}
    first = files["start-here.md"]
    assert "[5.1](/lessons/05_1.md)" in first
    assert "[commands](/docs/commands.md#look) code [here](#teachers) [web](https://example.org)" in first
    assert "a mark" not in files["docs/commands.md"]
    assert "![A picture](/figures/a.png)" in files["docs/commands.md"]
    index = files["docs/index.md"]
    assert "[first](/start-here.md), [all](/lessons/index.md), g" in index
    assert index.endswith(":hidden:\n\n/docs/commands\n`````\n")


def test_a_page_that_the_site_has_is_linked(tmp_path):
    assert b"[g](/gallery.md)" in guides(tmp_path, ("gallery",))["docs/index.md"]


def test_every_link_of_the_documentation_leads_to_a_document():
    files = guide_pages(LESSONS, ("lessons/index", "glossary", "gallery"))
    known = {*files, "lessons/index.md", "glossary.md", "gallery.md", "index.md"}
    known |= {
        f"lessons/{lesson.chapter:02}{'' if lesson.part is None else f'_{lesson.part}'}.md"
        for lesson in LESSONS
    }
    text = b"\n".join(data for path, data in files.items() if path.endswith(".md")).decode()
    links = re.findall(r"\]\(/([^)#\s]+)", text)
    assert len(links) > 150
    assert {*links} <= known


def test_an_installed_package_has_no_guides(tmp_path):
    assert guide_pages([], (), tmp_path) == {}


def test_places_of_a_translated_guide_keep_their_names():
    page = guide_pages([], (), language="zh_CN")["docs/teaching.md"].decode()
    for place in re.findall(r"\]\(#([\w-]+)\)", page):
        assert f"\n({place})=\n## " in page
