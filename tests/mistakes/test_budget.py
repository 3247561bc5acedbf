"""The limits on the time and the memory of a search."""

import time

from npformer.mistakes.budget import EVERY, Budget


def test_the_processor_time_of_this_thread_counts(monkeypatch):
    """So that neither other processes nor other threads shorten a search."""
    seconds = iter([10.0, 10.5, 10.9, 11.1, 11.2])
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds))
    limit = Budget(1)
    looks = [any(limit.is_over() for _ in range(EVERY)) for _ in range(4)]
    assert looks == [False, False, True, True], "the clock is read once in EVERY calls"
