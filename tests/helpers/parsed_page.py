"""A page of HTML, parsed by strict rules."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "input", "br", "hr", "wbr"}  # elements without an end


class ParsedPage(HTMLParser):
    """A parser that checks that tags close in order and that ids differ.

    It collects the names of all elements, and the addresses of what the page loads.
    """

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.loads = [], [], [], []
        self.feed(text)
        assert self.open == []
        assert len(set(self.ids)) == len(self.ids)

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        loading = ("src", "srcset", "data", "poster", *(["href"] if tag == "link" else []))
        self.loads += [value for name, value in attributes if name in loading]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
