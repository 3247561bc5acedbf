"""Fixtures of the explorer's tests: a browser, the page of a small translation, and its readers."""

import browser
import pytest
from readers import make_reader
from word_translator import word_translator

from npformer.explorer import explore

chromium = browser.chromium


@pytest.fixture(scope="session")
def html():
    """Return the page of a small translator with one sentence."""
    return explore(word_translator(), "the dog is tired").html


@pytest.fixture(params=["keyboard", "finger"])
def reader(request, chromium, html):
    """Yield a reader of the page who uses only the keyboard, and one who uses a finger on a phone."""
    with make_reader(request.param, chromium, html) as made:
        yield made
