"""A headless Chromium for the tests of pages, by playwright."""

import contextlib
import os
import shutil
from collections import defaultdict
from itertools import count

import pytest

# the names under which systems install it; playwright's own copy needs none
NAMES = ("chromium", "chromium-browser", "google-chrome")

_shared = contextlib.ExitStack()  # closes the browser that all folders of tests share
_users = []
_idle = defaultdict(list)  # the tabs that no test uses now, by their settings
_visits = count()
HOME = "http://page.test/"


@pytest.fixture(scope="session")
def chromium():
    """Yield the browser of `start_chromium`. Each folder has this fixture; a process runs playwright once."""
    browser = _users[0] if _users else _shared.enter_context(start_chromium())
    _users.append(browser)
    yield browser
    _users.pop()
    if not _users:
        _idle.clear()
        _shared.close()


@contextlib.contextmanager
def start_chromium():
    """Start a browser of playwright and yield it. Skip the test where playwright or Chromium is missing.

    Where the environment variable NPFORMER_BROWSER is set, as in CI, a missing browser is a failure.
    """
    required = os.environ.get("NPFORMER_BROWSER")
    try:
        from playwright import sync_api as api
    except ImportError:
        _give_up(required, "playwright is missing: pip install playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    with api.sync_playwright() as playwright:
        try:
            # as root, as in a container, Chromium starts only without its sandbox
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except api.Error as error:
            _give_up(required, f"Chromium does not start, install it: {str(error).splitlines()[0]}")
        with contextlib.closing(browser):
            yield browser


def _give_up(required, reason):
    """Skip the test, or fail if the browser is required."""
    (pytest.fail if required else pytest.skip)(reason)


class _Tab:
    """A tab of the browser, which shows the pages of one test after the other."""

    def __init__(self, browser, settings):
        self.page = browser.new_page(**settings)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._note)
        self.page.route("**/*", self._answer)

    def show(self, files):
        """Show the file without a name. From now on, what goes wrong is noted."""
        self.files, self.wrong = files, []
        self.page.mouse.move(0, 0)  # a page would answer to the pointer of the last test
        self.page.goto(f"{HOME}?{next(_visits)}#view=steps")  # where a page of the explorer has its steps

    def _note(self, message):
        if message.type == "error":
            self.wrong.append(message.text)

    def _answer(self, route):
        name = route.request.url.removeprefix(HOME).partition("?")[0]
        if name in self.files:
            kind, text = self.files[name]
            route.fulfill(body=text, content_type=kind)
        else:
            self.wrong.append(f"requests {route.request.url}")
            route.abort()


@contextlib.contextmanager
def open_page(browser, html, files=None, **settings):
    """Open a page of this text and yield it. At the end, fail if it wrote an error or made a request.

    A new tab costs several times what it costs to load a page, so tabs with the same settings are used again.

    Args:
        browser: The browser.
        html: The text of the page.
        files: The texts of files that the page may request, by name: the modules of a test's own page.
        settings: Settings of the page, such as viewport={"width": 390, "height": 844}.
    """
    idle = _idle[repr(sorted(settings.items()))]
    tab = idle.pop() if idle else _Tab(browser, settings)
    try:
        tab.show({"": ("text/html", html)} | (files or {}))
        yield tab.page
        assert tab.wrong == []
    except BaseException:
        tab.page.close()
        raise
    idle.append(tab)


def visit(page, link=""):
    """Open a page of `open_page` anew, with what follows its address, such as "#view=slope"."""
    page.goto(f"{HOME}?{next(_visits)}{link}")  # another address: else the browser would only follow the link
