"""A limit on the processor time of a search."""

import time

EVERY = 32  # calls between two looks at the clock, which takes milliseconds on some systems


class TimeLimit:
    """A limit on the processor time of this thread.

    A search does not find less on a busy machine, nor beside other threads of the process.

    Args:
        seconds: The limit.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds
        self._calls = 0
        self._over = False

    def is_over(self) -> bool:
        """Return whether the time is over. Call this once for each step of the search."""
        self._calls += 1
        if self._calls % EVERY == 0:
            self._over = time.thread_time() > self._end
        return self._over
