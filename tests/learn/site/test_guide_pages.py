"""The guides of docs/ as documents."""

import re

from site_documents import write_pages

from npformer.language import speaking
from npformer.learn.site.guide_pages import guide_pages

FILES = {
    "README.md": "# Documentation\n\n[first](start-here.md), [all](../lessons/README.md), "
    "[g](../figures/README.md)\n",
    "start-here.md": "# What to read first\n\n## Teachers\n\n"
    "[5.1](../lessons/05_1_scaled_dot_product_attention.py#L1)"
    " [commands](commands.md#look) [code](../npformer/data) [here](#teachers) [web](https://example.org)\n",
    "commands.md": "# Commands\n\n<!-- a mark -->\n## Look\n\n![A picture](../figures/a.png) and $x^2$\n\n"
    "| | b |\n|---|---|\n| 1 | 2 |\n",
}


def test_the_guides_and_their_links(tmp_path):
    for name, text in FILES.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.png").write_bytes(b"png")
    files = guide_pages(tmp_path)
    assert files.keys() == {"docs/index.md", "docs/commands.md", "start-here.md", "figures/a.png"}
    assert b"a mark" not in files["docs/commands.md"]
    assert files["docs/index.md"].endswith(b":glob:\n\n*\n`````\n")
    others = {"lessons/05_1.md": b"# Five", "gallery.md": b"# All"}
    assert write_pages(files | others, tmp_path / "site") == []
    commands = (tmp_path / "site" / "docs" / "commands.html").read_text("utf-8")
    assert 'src="../_images/a.png"' in commands
    assert commands.count("<th ") == 1  # the empty corner of a table is no head
    first = (tmp_path / "site" / "start-here.html").read_text("utf-8")
    for link in ('href="lessons/05_1.html"', 'href="docs/commands.html#look"', 'href="#teachers"'):
        assert link in first
    assert "npformer/data" not in first  # a file that the site does not show
    index = (tmp_path / "site" / "docs" / "index.html").read_text("utf-8")
    for link in ('href="../start-here.html"', 'href="../gallery.html"'):
        assert link in index
    assert "lessons/index" not in index


def test_an_installed_package_has_no_guides(tmp_path):
    assert guide_pages(tmp_path) == {}


def test_places_of_a_translated_guide_keep_their_names():
    with speaking("zh_CN"):
        page = guide_pages()["docs/teaching.md"].decode()
    for place in re.findall(r"\]\(#([\w-]+)\)", page):
        assert f"\n({place})=\n## " in page
