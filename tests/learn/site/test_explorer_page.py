"""The introduction of the explorer on the site."""

import re

from course import LESSONS

from npformer.learn.site.explorer_page import introduction
from npformer.learn.site.lesson_pages import view_of


def test_the_table_says_what_each_lesson_opens():
    page = introduction(LESSONS)["explorer.md"].decode()
    rows = re.findall(r"\| \[([^\]]*)\]\(/explorer/translator.html(#[^)]*)\) \|", page)
    texts = {address: shown for shown, address in rows}
    assert list(texts) == [view for lesson in LESSONS if (view := view_of(lesson))]
    assert texts["#direction=backward&step=loss.log_probs"] == "backward: `loss.log_probs`"
    assert texts["#step=encoder.norm.y"] == "forward: `encoder.norm.y`"
    assert texts["#view=attention"] == "the attention of all heads"
