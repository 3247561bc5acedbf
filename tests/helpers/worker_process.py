"""The tiny training run as a separate process, whose output goes to files, so that nothing of it is lost."""

import os
import subprocess
from pathlib import Path

from paths import TESTS
from waiting import PATIENCE, wait_until

WORKER = TESTS / "helpers" / "training_worker.py"


class WorkerProcess:
    """A process that trains with one BLAS thread.

    Args:
        command: The program and its arguments.
        folder: The folder for the files with its output and its errors.
        **environment: Further environment variables.
    """

    def __init__(self, command: list[object], folder: Path, **environment: str) -> None:
        self._printed = [folder / "output.txt", folder / "errors.txt"]
        with self._printed[0].open("w") as output, self._printed[1].open("w") as errors:
            self.process = subprocess.Popen(
                list(map(str, command)),
                stdout=output,
                stderr=errors,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | environment,
            )

    @property
    def printed(self) -> tuple[str, str]:
        """The output and the errors so far."""
        return self._printed[0].read_text(), self._printed[1].read_text()

    def interrupt_after(self, line: str, number: int) -> None:
        """Send a signal once the process has printed a line, or has ended."""
        wait_until(lambda: line in self.printed[0].splitlines() or self.process.poll() is not None)
        self.process.send_signal(number)

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end. Return the status, the output and the errors."""
        try:
            return self.process.wait(PATIENCE), *self.printed
        finally:
            self.process.kill()
