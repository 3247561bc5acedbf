"""The time that a training run takes."""

import time


class Timer:
    """The time that a run has taken, its speed, and an estimate of the time left."""

    def __init__(self) -> None:
        self.before = 0.0  # seconds of the run before this start of the program
        self.start(0)

    def start(self, step: int) -> None:
        """Begin to measure, after this step."""
        self._began, self._first = time.perf_counter(), step
        self.restart_throughput()

    def restart_throughput(self) -> None:
        """Begin to measure tokens per second anew."""
        self._tokens, self._busy = 0, 0.0

    def count(self, tokens: int, seconds: float) -> None:
        """Count one step."""
        self._tokens += tokens
        self._busy += seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second, without the time between steps."""
        return self._tokens / max(self._busy, 1e-9)

    @property
    def seconds(self) -> float:
        """Seconds since the run began, without the time in which it was stopped."""
        return self.before + time.perf_counter() - self._began

    def seconds_left(self, step: int, steps: int) -> float:
        """Estimate the seconds left from the mean time of a step, validation and checkpoints included."""
        seconds_per_step = (time.perf_counter() - self._began) / max(1, step - self._first)
        return seconds_per_step * (steps - step)
