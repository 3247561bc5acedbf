"""The limit on the time of a search."""

import time

from npformer.mistakes.time_limit import EVERY, TimeLimit


def test_the_processor_time_of_this_thread_counts(monkeypatch):
    """So that neither other processes nor other threads shorten a search."""
    seconds = iter([10.0, 10.5, 10.9, 11.1, 11.2])
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds))
    limit = TimeLimit(1)
    looks = [any(limit.is_over() for _ in range(EVERY)) for _ in range(4)]
    assert looks == [False, False, True, True], "the clock is read once in EVERY calls"
