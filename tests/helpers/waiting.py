"""Waiting for what another process does, without an end that a busy machine would reach."""

import time

import pytest

PATIENCE = 300  # seconds that a test waits at most for one event


def wait_until(condition):
    """Wait until the condition holds, or fail after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"it did not happen within {PATIENCE} s")
        time.sleep(0.02)
