"""Worker processes that grade solutions, one after the other: python -m npformer.learn.classroom.worker

A worker reads one line of JSON for each solution and answers with one line. It has a session of its own, so
that Ctrl-C reaches only the process that started it. When that process ends or closes the worker, the
worker ends, and with it the child process in which a solution runs.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

from npformer.language import later
from npformer.learn.classroom.assess import STATUSES, WRONG, Result, assess, without_solution
from npformer.learn.classroom.assignment import Assignment, assignment_from

PATIENCE = 10.0  # seconds for a worker to end
JUDGING = 300.0  # seconds for the grader itself, beyond the limits of a solution
ENDED = later("the grader was ended while it looked at this solution")


class Worker:
    """A worker process. It starts with the first solution, and again if it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def assess(self, assignment: Assignment, name: str, text: str) -> Result:
        """Grade a solution as `assess` does. A worker that fails gives a result that says so.

        Args:
            assignment: The assignment.
            name: The name of the exercise.
            text: The text of the solution.
        """
        request = {"assignment": assignment.as_settings(), "name": name, "text": text}
        process = self._started()
        limit = threading.Timer(12 * assignment.seconds + JUDGING, process.kill)
        limit.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            result = result_from(json.loads(process.stdout.readline()))
        except (OSError, ValueError):
            result = None
        finally:
            limit.cancel()
        if result is not None:
            return result
        _end(process)
        return without_solution(assignment, name, WRONG, ENDED)

    def close(self) -> None:
        """End the process, also while it grades a solution."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                _end(self._process)

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker is closed")
            if self._process is not None and self._process.poll() is not None:
                _end(self._process)
                self._process = None
            if self._process is None:
                path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "npformer.learn.classroom.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=os.environ | {"PYTHONPATH": path},
                )
            return self._process


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a worker, which first removes its temporary folder if the system can ask it to."""
    if os.name == "posix":
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            assert stream is not None
            stream.close()


def result_from(content: Any) -> Result | None:
    """Return the result of a JSON object that `Result.as_settings` wrote, or None if it is none."""
    match content:
        case {
            "exercise": str(),
            "status": str(status),
            "points": int() | float(),
            "possible": int() | float(),
            "message": str(),
            "clues": [*clues],
            "picture": str(),
            "printed": str(),
            "remark": str(),
        } if status in STATUSES and len(content) == 9:
            return Result(**content | {"clues": tuple(map(str, clues))})
    return None


def main() -> None:
    """Grade the solutions that the lines of the standard input have, until it ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored
    for line in sys.stdin.buffer:
        request = json.loads(line)
        assignment = assignment_from(request["assignment"], "the request")
        result = assess(assignment, request["name"], request["text"])
        sys.stdout.buffer.write(json.dumps(result.as_settings()).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
