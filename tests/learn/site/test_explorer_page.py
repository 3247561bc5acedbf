"""The introduction of the explorer on the site."""

import re

import pytest
from course import LESSONS

from npformer.learn.site.explorer_page import introduction
from npformer.learn.site.lesson_pages import address_of, view_of
from npformer.learn.site.markdown import page


def test_the_table_says_what_each_lesson_opens():
    shown = introduction(LESSONS)["explorer.md"].decode()
    rows = re.findall(r"\| \[([^\]]*)\]\(/explorer/translator.html(#[^)]*)\) \|", shown)
    texts = {address: what for what, address in rows}
    assert list(texts) == [view for lesson in LESSONS if (view := view_of(lesson))]
    assert texts["#direction=backward&step=loss.log_probs"] == "backward: `loss.log_probs`"
    assert texts["#step=encoder.norm.y"] == "forward: `encoder.norm.y`"
    assert texts["#view=attention"] == "the attention of all heads"


@pytest.mark.parametrize(("view", "end"), [("", "#stripped=1"), ("#view=attention", "&amp;stripped=1")])
def test_a_lesson_shows_its_view_without_the_frame_and_links_the_whole(view, end):
    shown = page("view", address=address_of(view)).decode()
    assert f'href="explorer/translator.html{view}"' in shown
    assert f'src="explorer/translator.html{view}{end}"' in shown
