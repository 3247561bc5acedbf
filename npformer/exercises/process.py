"""check: grade a learner's file in a process of its own, with a time limit."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from npformer.errors import UserError
from npformer.exercises.fault import Verdict

SECONDS = 10.0
GRACE = 5.0  # to start and to end


def check(
    name: str,
    file: Path,
    seconds: float = SECONDS,
    *,
    child: str = "npformer.exercises.child",
    start: str = "npformer exercise start",
) -> Verdict:
    """Grade the file. Nothing that its code does ends this process or lasts longer than `seconds`.

    child: the module that grades it in the process of its own; start: the command that writes such a file.
    Errors: UserError where there is no such file.
    """
    if not file.is_file():
        raise UserError(f"there is no file {file}: {start} {name} writes it")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "verdict.json"
        ended = _run([child, name, str(file), str(result), str(seconds)], seconds + GRACE)
        if result.is_file():
            return Verdict(**json.loads(result.read_text(encoding="utf-8")))
        stuck = Path(f"{result}.stuck")
        where = stuck.read_text(encoding="utf-8", errors="replace") if stuck.is_file() else ""
    if where.startswith("Timeout") or ended is None:
        return Verdict(
            False, f"it was stopped after {seconds:g} seconds{_line(where, file)}: a loop without an end?"
        )
    how = f"was killed by signal {-ended}" if ended < 0 else f"ended the program with status {ended}"
    return Verdict(False, f"your code {how} before the check was over")


def _run(arguments: list[str], limit: float) -> int | None:
    """The status of the child process; None where it had to be killed."""
    # a session of its own: what the learner's code starts is killed with it
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill(process)


def _kill(process) -> None:
    """End the process and all that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # it has ended, and left nothing
    process.wait()


def _line(where: str, file: Path) -> str:
    """The line of the learner's file that was running."""
    found = re.search(rf'{re.escape(file.name)}", line (\d+)', where)
    return f", in line {found[1]}" if found else ""
