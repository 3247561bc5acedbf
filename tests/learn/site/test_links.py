"""The check of the links of a site."""

import pytest

from npformer.errors import UserError
from npformer.learn.site.links import Targets

GOOD = (
    '<h2 id="here">H</h2><a href="#here">1</a> <a class="x" href="b/c.html#there"></a> <img src="p%20q.png"> '
    '<a href="https://example.org/x">3</a> <a href="explorer/t.html#step=a.b">4</a>'
)
OTHER = '<p id="there"><a href="../a.html">up</a> <a href="d.html">away</a></p>'
FILES = ["p q.png", "explorer/t.html", "b/d.html"]


def test_links_that_lead_somewhere():
    Targets({"a.html": GOOD, "b/c.html": OTHER}, FILES).check()


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ('<a href="none.html">x</a>', "links none.html, which the site does not have: correct the link"),
        ('<a href="#none">x</a>', "a.html links #none, but a.html has no such place: correct the link"),
        ('<a href="b/c.html#none">x</a>', "links b/c.html#none, but b/c.html has no such place"),
        ('<img alt="" src="../a.html">', "links ../a.html, which the site does not have"),
    ],
)
def test_a_dead_link_is_found_and_can_become_text(html, message):
    targets = Targets({"a.html": GOOD + html, "b/c.html": OTHER}, FILES)
    with pytest.raises(UserError, match=message):
        targets.check()
    if html.startswith("<a"):
        assert targets.without_dead_links() == {"a.html": f"{GOOD}x", "b/c.html": OTHER}
