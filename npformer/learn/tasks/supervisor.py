"""The supervisor: a process that ends every process that the learner's code started.

On Linux the supervisor becomes a child subreaper: a descendant whose own parent has ended becomes a child of
the supervisor, also if it left its session (setsid) or forked twice. So the supervisor finds and ends all of
them. On other systems it ends the process group, which such a process may have left.

The learner's code runs under the same user, so it can send signals to the supervisor and to npformer itself.
This is not prevented. The learner's own process ends with the supervisor. A program that forks without end is
stopped by a limit on the number of processes (see limits.py), from which the system exempts root.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable

MOST_PROCESSES = 32
PATROL = 0.1  # seconds between two counts of the processes
FAREWELL = 30.0  # the largest number of seconds for which the supervisor tries to end processes
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def fork_under_supervision(seconds: float, report: Callable[[str], None]) -> None:
    """Fork, and return in the new process. The old one becomes its supervisor and never returns.

    The supervisor ends all descendants once the new process has ended, has run too long or has started too
    many processes, or once the standard input is closed, which happens at the latest when the parent ends.
    Then it ends in the same way as the new process: with its status or by the same signal.

    Args:
        seconds: The time after which all processes are ended.
        report: A function that takes a sentence about the reason why the processes were ended.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    worker = os.fork()
    if worker == 0:
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    status, why = _watch(worker, time.monotonic() + seconds)
    _end_descendants(worker)
    if why:
        report(why)
    _end_like(status)


def _watch(worker: int, end: float) -> tuple[int, str]:
    """Wait for the worker. Return its status (negative for a signal), and why it must be ended, or ""."""
    wakes = [0]  # the standard input
    with contextlib.suppress(AttributeError, OSError):  # of systems without it
        wakes.append(os.pidfd_open(worker))  # readable once the worker has ended
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)  # the worker, or a process that has lost its own parent
        if ended == worker:
            return os.waitstatus_to_exitcode(status), ""
        if ended:
            continue
        if 0 in select.select(wakes, [], [], PATROL)[0]:
            return -signal.SIGKILL, "the check was interrupted"
        if time.monotonic() > end:
            return -signal.SIGKILL, "it took too long"
        if len(_descendants()) > MOST_PROCESSES:
            return -signal.SIGKILL, f"it started more than {MOST_PROCESSES} processes"


def _end_descendants(worker: int) -> None:
    """End the worker's process group, all at once, and then every other descendant, round by round."""
    end = time.monotonic() + FAREWELL
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            os.killpg(worker, signal.SIGKILL)
        for process in _descendants():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # none is left
        time.sleep(0.005)


def _descendants() -> list[int]:
    """Return the children of this process, their children, and so on, or [] where there is no /proc."""
    children: dict[int, list[int]] = {}
    for process in os.listdir("/proc") if sys.platform == "linux" else []:
        if process.isdecimal():
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{process}/stat", "rb") as file:
                # "12 (name) S 7 ...": the parent follows the name, which may hold brackets itself
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(process))
    found = list(children.get(os.getpid(), []))
    for descendant in found:  # the list grows while it is read
        found += children.get(descendant, [])
    return found


def _end_like(status: int) -> None:
    """End this process with the status, or by the signal if it is negative."""
    if status < 0:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        time.sleep(1)  # the signal arrives at once; the process does not go on
    os._exit(status if status >= 0 else 1)


def _prctl(option: int, value: int) -> None:
    """Set an option of this process on Linux."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
