"""The guides of docs/ as pages."""

from course import LESSONS
from site_frame import lesson_pages

from npformer.learn.course.lesson import find_lesson
from npformer.learn.site.glossary_page import glossary_page
from npformer.learn.site.guide_pages import START, guide_pages
from npformer.learn.site.lesson_links import CONTENTS
from npformer.learn.site.links import ADDRESS, Targets

FILES = {
    "README.md": "# Documentation\n\n[first](start-here.md), [all](../lessons/README.md), "
    "[g](../figures/README.md)\n",
    "start-here.md": "# What to read first\n\n## Teachers\n\n"
    "[5.1](../lessons/05_1_scaled_dot_product_attention.py#L1)"
    " [commands](commands.md#look) [code](../npformer/data) [here](#teachers) [web](https://example.org)\n",
    "commands.md": "# Commands\n\n<!-- a mark -->\n## Look\n\n![A picture](../figures/a.png) and $x^2$\n",
}


def guides(tmp_path, others=("lessons/index.html",)):
    for name, text in FILES.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    (tmp_path / "figures").mkdir(exist_ok=True)
    (tmp_path / "figures" / "a.png").write_bytes(b"png")
    return {page.path: page for page in guide_pages([find_lesson("5.1")], others, tmp_path)}


def test_the_guides_and_their_links(tmp_path):
    pages = guides(tmp_path)
    assert list(pages) == ["docs/index.html", "docs/commands.html", "start-here.html"]
    assert [page.section for page in pages.values()] == ["Guides", "Guides", "Start"]
    first = pages["start-here.html"]
    assert first.title == "What to read first"
    assert '<a href="lessons/05_1.html">5.1</a>' in first.body
    assert '<a href="docs/commands.html#look">commands</a>' in first.body
    assert "</a> code <a" in first.body  # the site does not show this file
    assert '<a href="#teachers">here</a> <a href="https://example.org">web</a>' in first.body
    assert "a mark" not in pages["docs/commands.html"].body
    index = pages["docs/index.html"].body
    assert '<a href="../start-here.html">first</a>, <a href="../lessons/index.html">all</a>, g' in index


def test_no_link_of_the_documentation_is_dead():
    others = [*lesson_pages(), glossary_page(LESSONS)]
    unmade = [START, CONTENTS, "gallery.html"]  # pages that take long or need the others
    guides = list(guide_pages(LESSONS, [*(page.path for page in others), *unmade]))
    assets = [path for page in guides for path in page.assets]
    targets = Targets({page.path: page.body for page in [*others, *guides]}, [*assets, *unmade])
    problems = [
        (page.path, address, targets.problem(page.path, address))
        for page in guides
        for address in ADDRESS.findall(page.body)
    ]
    assert [each for each in problems if each[2]] == []
    assert len(problems) > 200


def test_a_page_that_the_site_has_is_linked(tmp_path):
    assert '<a href="../gallery.html">g</a>' in guides(tmp_path, ("gallery.html",))["docs/index.html"].body


def test_pictures_are_copied_and_formulas_are_typeset(tmp_path):
    page = guides(tmp_path)["docs/commands.html"]
    assert page.assets == {"docs/a.png": b"png"}
    assert 'src="a.png" alt="A picture"' in page.body
    assert "<msup>" in page.body


def test_an_installed_package_has_no_guides(tmp_path):
    assert list(guide_pages([], (), tmp_path)) == []
