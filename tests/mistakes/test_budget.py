"""The limits on the time and the memory of a search."""

import subprocess
import sys
import time

import pytest

from npformer.mistakes.budget import EVERY, Budget


def test_the_processor_time_of_this_thread_counts(monkeypatch):
    """So that neither other processes nor other threads shorten a search."""
    seconds = iter([10.0, 10.5, 10.9, 11.1, 11.2])
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds))
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    limit = Budget(1)
    looks = [any(limit.is_over() for _ in range(EVERY)) for _ in range(4)]
    assert looks == [False, False, True, True], "the clock is read once in EVERY calls"


def test_the_clock_is_read_after_a_long_step(monkeypatch):
    seconds = iter([10.0, 11.5])
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds))
    now = iter([0.0, 0.01, 0.5, 0.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    limit = Budget(1)
    assert [limit.is_over(), limit.is_over()] == [False, True]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the size of a process")
def test_code_that_takes_too_much_memory_is_stopped_and_the_limit_ends():
    code = """
import resource
from npformer.mistakes.budget import limited_memory

before = resource.getrlimit(resource.RLIMIT_DATA)
try:
    with limited_memory(1 << 28):
        bytearray(1 << 29)
except MemoryError:
    print("stopped", resource.getrlimit(resource.RLIMIT_DATA) == before, len(bytearray(1 << 29)) == 1 << 29)
"""
    # in a process of its own, since what other tests freed may still belong to this one
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "stopped True True\n"
