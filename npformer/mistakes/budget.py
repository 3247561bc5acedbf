"""The budget of a search: a limit on its processor time, and one on the memory that changed code may take."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

EVERY = 32  # calls between two looks at the clock, which takes milliseconds on some systems
AT_LEAST_EVERY = 0.1  # seconds: a line of changed code may take long
MEMORY = 1 << 30  # bytes that a search may allocate


class Budget:
    """A limit on the processor time of this thread.

    A search does not find less on a busy machine, nor beside other threads of the process.

    Args:
        seconds: The limit.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds
        self._calls = 0
        self._next_look = time.perf_counter() + AT_LEAST_EVERY
        self._over = False

    def is_over(self) -> bool:
        """Return whether the time is over. Call this once for each step of the search."""
        self._calls += 1
        if self._calls % EVERY == 0 or time.perf_counter() > self._next_look:
            self._next_look = time.perf_counter() + AT_LEAST_EVERY
            self._over = time.thread_time() > self._end
        return self._over


@contextlib.contextmanager
def limited_memory(more: int = MEMORY) -> Iterator[None]:
    """Raise MemoryError in code that lets the process grow by more than this inside a with block, on Linux.

    Memory that was freed before, and that the process has kept, is used first and does not count.

    Args:
        more: The number of bytes beyond those that the process has now.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])  # of data and stack
    except (ImportError, OSError):  # Windows, macOS
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [limit for limit in (before, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([pages * resource.getpagesize() + more, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))
