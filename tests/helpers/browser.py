"""A headless Chromium for the tests of pages, by playwright."""

import contextlib
import os
import shutil

import pytest

# the names under which systems install it; playwright's own copy needs none
NAMES = ("chromium", "chromium-browser", "google-chrome")


_shared = contextlib.ExitStack()  # closes the browser that all folders of tests share
_users = []


@pytest.fixture(scope="session")
def chromium():
    """Yield the browser of `start_chromium`. Each folder has this fixture; a process runs playwright once."""
    browser = _users[0] if _users else _shared.enter_context(start_chromium())
    _users.append(browser)
    yield browser
    _users.pop()
    if not _users:
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


@contextlib.contextmanager
def open_page(browser, html, files=None, **settings):
    """Open a page of this text and yield it. At the end, fail if it wrote an error or made a request.

    Args:
        browser: The browser.
        html: The text of the page.
        files: The texts of files that the page may request, by name: the modules of a test's own page.
        settings: Settings of the page, such as viewport={"width": 390, "height": 844}.
    """
    files = {"": ("text/html", html)} | (files or {})
    errors, requests = [], []

    def answer(route):
        name = route.request.url.removeprefix("http://page.test/")
        if name in files:
            kind, text = files[name]
            route.fulfill(body=text, content_type=kind)
        else:
            requests.append(route.request.url)
            route.abort()

    page = browser.new_page(**settings)
    try:
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.route("**/*", answer)
        page.goto("http://page.test/")
        yield page
        assert errors == []
        assert requests == []
    finally:
        page.close()
