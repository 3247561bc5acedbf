"""How long a run has taken, how fast it is, and how long it still takes."""

import time


class Clock:
    """The time of a run, over all its sessions."""

    def __init__(self) -> None:
        self.before = 0.0  # seconds of the sessions before this one
        self.start(0)

    def start(self, step: int) -> None:
        """Begin to measure, after this step."""
        self._began, self._first = time.perf_counter(), step
        self.restart_rate()

    def restart_rate(self) -> None:
        """Measure tokens per second from here."""
        self._tokens, self._busy = 0, 0.0

    def count(self, tokens: int, seconds: float) -> None:
        """Add one step."""
        self._tokens += tokens
        self._busy += seconds

    @property
    def rate(self) -> float:
        """Tokens per second of the steps themselves."""
        return self._tokens / max(self._busy, 1e-9)

    @property
    def seconds(self) -> float:
        """Since the run began, without the time between sessions."""
        return self.before + time.perf_counter() - self._began

    def seconds_left(self, step: int, steps: int) -> float:
        """At the pace of this session, validation and checkpoints included."""
        pace = (time.perf_counter() - self._began) / max(1, step - self._first)
        return pace * (steps - step)
