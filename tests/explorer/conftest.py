"""Fixtures of the explorer's tests."""

import browser

chromium = browser.chromium
