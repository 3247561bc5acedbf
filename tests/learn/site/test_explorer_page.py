"""The introduction of the explorer on the site."""

import re

from course import LESSONS

from npformer.learn.site.explorer_page import introduction
from npformer.learn.site.lesson_pages import view_of


def test_the_table_says_what_each_lesson_opens():
    rows = re.findall(
        r'<td><a href="explorer/translator.html(#[^"]*)">(.*?)</a></td></tr>', introduction(LESSONS).decode()
    )
    texts = {address.replace("&amp;", "&"): text.replace("<wbr>", "") for address, text in rows}
    assert list(texts) == [view for lesson in LESSONS if (view := view_of(lesson))]
    assert texts["#direction=backward&step=loss.log_probs"] == "backward: <code>loss.log_probs</code>"
    assert texts["#step=encoder.norm.y"] == "forward: <code>encoder.norm.y</code>"
    assert texts["#view=attention"] == "the attention of all heads"
