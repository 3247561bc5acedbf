"""Readers of a page of the explorer who use the keyboard alone, or a finger alone, for tests."""

from contextlib import contextmanager

from browser import open_page

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESK = {"viewport": {"width": 1280, "height": 900}}
# the visible controls without a name that a screen reader could read
UNNAMED = """
[...document.querySelectorAll("button, input, canvas, [role=button], [role=group]")]
    .filter((e) => e.checkVisibility())
    .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length))
    .map((e) => e.outerHTML)
"""
# whether an element stands before the one that has the focus
PRECEDES = """selector => {
    const [active, wanted] = [document.activeElement, document.querySelector(selector)];
    const place = active === document.body || !wanted ? 0 : active.compareDocumentPosition(wanted);
    return Boolean(place & Node.DOCUMENT_POSITION_PRECEDING);
}"""
VIEWS = [
    *("The model", "Steps", "Attention", "Predictions"),
    *("Compare", "What if", "Check a gradient", "Teach it"),
]


class Keyboard:
    """A reader without a mouse: everything must be reached with Tab and pressed with Enter."""

    def __init__(self, page):
        self.page = page

    def focus(self, selector):
        """Press Tab, or Shift and Tab, until an element has the focus."""
        key = "Shift+Tab" if self.page.evaluate(PRECEDES, selector) else "Tab"
        for _ in range(150):
            if self.page.evaluate("s => document.activeElement === document.querySelector(s)", selector):
                return
            self.page.keyboard.press(key)
        raise AssertionError(f"{key} does not reach {selector}")

    def press(self, selector):
        self.focus(selector)
        self.page.keyboard.press("Enter")

    def write(self, selector, text):
        self.focus(selector)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def choose_cell(self, canvas):
        self.focus(canvas)
        self.page.keyboard.press("ArrowDown")

    def change_cell(self, canvas):
        self.choose_cell(canvas)
        self.page.keyboard.press("Enter")

    def slide(self, selector):
        self.focus(selector)
        for _ in range(30):
            self.page.keyboard.press("ArrowRight")


class Finger:
    """A reader with a phone: everything must be done by taps."""

    def __init__(self, page):
        self.page = page

    def press(self, selector):
        self.page.tap(selector)

    def write(self, selector, text):
        self.page.tap(selector)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def choose_cell(self, canvas):
        self.page.locator(canvas).scroll_into_view_if_needed()
        box = self.page.locator(canvas).bounding_box()
        self.page.tap(canvas, position={"x": 0.6 * box["width"], "y": box["height"] - 12})

    change_cell = choose_cell

    def slide(self, selector):
        box = self.page.locator(selector).bounding_box()
        self.page.tap(selector, position={"x": box["width"] * 0.8, "y": box["height"] / 2})


READERS = {"keyboard": (Keyboard, DESK), "finger": (Finger, PHONE)}


@contextmanager
def make_reader(name, browser, html):
    """Open a page and yield its reader, "keyboard" or "finger"."""
    make, settings = READERS[name]
    with open_page(browser, html, **settings) as page:
        yield make(page)


def open_view(reader, name):
    """Open a view by its button."""
    number = VIEWS.index(name) + 1
    reader.press(f"#views button:nth-child({number})")
    assert reader.page.get_attribute(f"#views button:nth-child({number})", "aria-pressed") == "true"


def text(reader, selector):
    """Return the text of an element."""
    return reader.page.text_content(selector)


def loss(reader):
    """Return the loss of the page."""
    return reader.page.evaluate("npformer.loss()")


def saved(reader, selector):
    """Return the bytes of the file that a button saves."""
    with reader.page.expect_download() as download:
        reader.press(selector)
    return download.value.path().read_bytes()
