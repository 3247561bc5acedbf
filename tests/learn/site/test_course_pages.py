"""The explorer on the site: its introduction, and its views in lessons."""

import re

import pytest
from course import LESSONS

from npformer.learn.site.course_pages import overview_pages
from npformer.learn.site.lesson_links import address_of, view_of
from npformer.learn.site.markdown import templates


def test_the_list_has_the_view_of_each_lesson():
    shown = overview_pages(LESSONS, (), has_explorer=True)["explorer.md"].decode()
    rows = re.findall(r"^- \[(\S+) .*\]\(explorer/translator.html(#[^)]*)\)$", shown, re.MULTILINE)
    assert rows == [(each.number, view) for each in LESSONS if (view := view_of(each))]
    assert ("5.1", "#step=encoder.0.self_attention.attention.scores") in rows


@pytest.mark.parametrize(("view", "end"), [("", "#stripped=1"), ("#view=attention", "&amp;stripped=1")])
def test_a_lesson_shows_its_view_without_the_frame_and_links_the_whole(view, end):
    shown = templates().globals["view"](address_of(view, "index"))
    assert f'href="explorer/translator.html{view}"' in shown
    assert f'src="explorer/translator.html{view}{end}"' in shown
