"""The pages in Chinese: what is translated, the switch of the language, links to English pages, search."""

import json

import pytest
from site_pages import dead_links, text_of

from npformer.learn.course.lesson import find_lesson
from npformer.learn.site import build
from npformer.learn.site.build import build_site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build a site of one lesson that is translated and one that is not, and return its folder."""
    for name in build.NEEDED:
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("translated") / "site"
    built = build_site(folder, [find_lesson("0.0"), find_lesson("0.3")])
    assert built.warnings == []
    return folder


def test_a_translated_lesson_has_a_page_in_both_languages(site):
    page = (site / "zh/lessons/00_0.html").read_text("utf-8")
    assert '<html class="no-js" lang="zh-CN"' in page
    for text in ("0.0 · 十五分钟，学会一点东西", "前向传播：从左边的三个数到损失 L", "绘图代码：5 行"):
        assert text in text_of(page)
    assert "p = w * x" in text_of(page)
    assert '<a href="../../lessons/00_0.html">English</a>' in page
    assert '<a href="../zh/lessons/00_0.html">中文</a>' in (site / "lessons/00_0.html").read_text("utf-8")
    assert dead_links(site) == []


def test_the_glossary_the_exercises_and_a_guide_are_in_chinese(site):
    exercises = text_of((site / "zh/exercises.html").read_text("utf-8"))
    for heading in ("5 · 缩放点积注意力", "14 · 解码（英文）"):  # the exercises of chapter 14 have no catalog
        assert heading in exercises
    assert "(in English)" not in text_of((site / "exercises.html").read_text("utf-8"))
    glossary = text_of((site / "zh/glossary.html").read_text("utf-8"))
    assert "损失对一个数组中每个数的导数所组成的数组" in glossary
    assert 'id="an-assignment-in-nbgrader"' in (site / "zh/docs/teaching.html").read_text("utf-8")


def test_what_is_not_translated_is_offered_in_english(site):
    assert not (site / "zh/lessons/00_3.html").exists()
    assert 'href="../../lessons/00_3.html">' in (site / "zh/lessons/00_0.html").read_text("utf-8")
    assert '<a href="../zh/index.html">中文</a>' in (site / "lessons/00_3.html").read_text("utf-8")
    assert '<a href="../index.html">English</a>' in (site / "zh/index.html").read_text("utf-8")


def test_the_search_in_chinese_has_the_chinese_pages(site):
    index = (site / "zh/searchindex.js").read_text("utf-8")
    data = json.loads(index.removeprefix("Search.setIndex(").removesuffix(");\n"))
    assert any("梯度" in part["text"] for part in data["parts"])
    assert "<h1>搜索</h1>" in (site / "zh/search.html").read_text("utf-8")


def test_the_frame_of_the_pages_is_in_chinese(site):
    shown = text_of((site / "zh/lessons/00_0.html").read_text("utf-8"))
    for word, english in {
        "下一页": "Next",
        "跳到正文": "Skip to content",
        "本页内容": "On this page",
        "制作工具：": "Made with",
    }.items():
        assert word in shown
        assert english not in shown


def test_the_labels_of_the_theme_have_the_language_of_the_page(site):
    for page, column, icon in (
        ("lessons/00_0.html", "Page", "Menu"),
        ("zh/lessons/00_0.html", "本页", "菜单"),
    ):
        shown = (site / page).read_text("utf-8")
        assert f'<aside aria-label="{column}" class="toc-drawer' in shown
        assert f"<title>{icon}</title>" in shown


def test_the_explorer_on_a_page_in_chinese_speaks_chinese(read):
    address = "explorer/translator.html?language=zh-CN"
    assert f'src="../../{address}#' in read("zh/lessons/05_1.html")
    assert f'href="../{address}"' in read("zh/explorer.html")
    assert "?language" not in read("explorer.html")
