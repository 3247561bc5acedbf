"""The child process that runs and judges a learner's file, and the parent process that waits for it.

The learner's code may loop forever, exit, crash or print without end. None of this affects the parent
process: the child has a time limit, is the leader of a new session and has no standard streams. It writes the
verdict to a file.

The child is started as

    python -m npformer.learn.tasks.process SOURCE TASK FILE RESULT SECONDS

where SOURCE is the registry of the task, such as npformer.learn.exercises:EXERCISES.
"""

import faulthandler
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.learn.tasks.registry import T, TaskRegistry
from npformer.learn.tasks.verdict import Verdict, describe_error

SECONDS = 10.0  # the default time limit
STARTUP = 60.0  # additional seconds for the child to start and to end, which is slow on a busy machine
PRINTED = 2000  # the number of characters of the learner's output that are kept


# ---------------------------------------------------------------------------------------------------------
# The parent


def check(tasks: TaskRegistry[T], task: T, file: Path, seconds: float = SECONDS) -> Verdict:
    """Judge a learner's file in a child process.

    Args:
        tasks: The registry that the task belongs to.
        task: The exercise or bug.
        file: The learner's file.
        seconds: The time limit.

    Returns:
        The verdict. If the learner's code was stopped or ended the process, the message says so.

    Raises:
        UserError: If there is no such file.
    """
    if not file.is_file():
        raise UserError(f"there is no file {file}: {tasks.command} start {task.name} writes it")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "verdict.json"
        arguments = [tasks.source, task.name, str(file), str(result), str(seconds)]
        status = _run_child(arguments, seconds + STARTUP)
        if result.is_file():
            return Verdict(**json.loads(result.read_text(encoding="utf-8")))
        stuck = _stuck_file(result)
        stack = stuck.read_text(encoding="utf-8", errors="replace") if stuck.is_file() else ""
    if stack.startswith("Timeout") or status is None:
        line = _line_in(stack, file)
        return Verdict(False, f"it was stopped after {seconds:g} seconds{line}: is there an infinite loop?")
    how = f"was killed by signal {-status}" if status < 0 else f"ended the program with status {status}"
    return Verdict(False, f"your code {how} before the check was over")


def _run_child(arguments: list[str], limit: float) -> int | None:
    """Return the exit status of the child process, or None if it was killed after the limit in seconds."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "npformer.learn.tasks.process", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # processes that the learner's code starts are killed with it
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the child process and every process that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # it has ended already
    process.wait()


def _line_in(stack: str, file: Path) -> str:
    """Return ", in line N" for the line of the learner's file that was running, or ""."""
    found = re.search(rf'{re.escape(file.name)}", line (\d+)', stack)
    return f", in line {found[1]}" if found else ""


def _stuck_file(result: Path) -> Path:
    """Return the file to which the child writes its stack at the time limit."""
    return result.with_name(result.name + ".stuck")


# ---------------------------------------------------------------------------------------------------------
# The child


def main(source: str, name: str, file: str, result: str, seconds: str) -> None:
    """Judge a file and write the verdict as JSON. After the time limit, write the stack and exit.

    Args:
        source: The registry of the task, as "MODULE:NAME".
        name: The name of the task.
        file: The learner's file.
        result: The file for the verdict.
        seconds: The time limit. It begins after the imports and covers the learner's code only.
    """
    module, _, registry = source.partition(":")
    tasks: TaskRegistry[Any] = getattr(importlib.import_module(module), registry)
    task = tasks.find(name)
    with _stuck_file(Path(result)).open("w", encoding="utf-8") as stuck:
        faulthandler.dump_traceback_later(float(seconds), exit=True, file=stuck)
        output = _Beginning()
        sys.stdout = sys.stderr = output
        verdict = judge_file(tasks, task, file)
        faulthandler.cancel_dump_traceback_later()
    verdict.printed = output.text
    Path(result).write_text(json.dumps(verdict.as_json()), encoding="utf-8")


def judge_file(tasks: TaskRegistry[T], task: T, file: str) -> Verdict:
    """Run a learner's file in this process and return the verdict on the names that it defines.

    Args:
        tasks: The registry that the task belongs to.
        task: The exercise or bug.
        file: The path of the learner's file.
    """
    namespace = {"__name__": "exercise", "__file__": file}
    try:
        text = Path(file).read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, file, "exec"), namespace)
        if not text.strip():
            start = f"{tasks.command} start {task.name}"
            return Verdict(False, f"the file is empty: move it away, and {start} writes it anew")
        return tasks.judge(task, namespace, file)
    except UnicodeDecodeError:
        return Verdict(False, "the file is not UTF-8 text")
    except SystemExit as error:
        return Verdict(False, f"your code ended the program (SystemExit {error.code}): leave out exit()")
    except BaseException as error:  # the learner's code may raise anything
        return Verdict(False, describe_error(error, file))


class _Beginning(io.TextIOBase):
    """A stream that keeps only the beginning of what is written to it."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text[: PRINTED - len(self.text)]
        return len(text)

    def writable(self) -> bool:
        return True


if __name__ == "__main__":
    main(*sys.argv[1:])
