"""Limits on what a child process may use: time, memory, files."""

import contextlib
import faulthandler
import math
import os
import signal
import sys
import time
from typing import TextIO

FILE_SIZE = 64 << 20  # bytes of the largest file that may be written
OPEN_FILES = 256
MORE_TASKS = 100  # processes and threads that the user may have beyond those that run when the check starts
HAS_TIMER = hasattr(signal, "setitimer")  # of processor time


def limit_resources(memory: int, seconds: float) -> None:
    """Limit this process and those that it will start. Do nothing where the system has no such limits.

    Args:
        memory: The largest number of bytes that one process may allocate.
        seconds: The limit on processor time, for a process that clears the timer of limit_time.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {
        "RLIMIT_CPU": math.ceil(time.process_time() + 1.2 * seconds) + 1,
        "RLIMIT_DATA": memory,  # not RLIMIT_AS: libraries reserve addresses that they never use
        "RLIMIT_FSIZE": FILE_SIZE,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": 0,
    }
    if sys.platform == "linux":
        # stops a program that forks without end; the system does not apply it to root
        limits["RLIMIT_NPROC"] = _tasks_of_user() + MORE_TASKS
    for name, limit in limits.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (lowest, lowest))


def _tasks_of_user() -> int:
    """Return the number of processes and threads of this user, which is what the system limits."""
    tasks = 0
    for process in os.listdir("/proc"):
        if process.isdecimal():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{process}").st_uid == os.getuid():
                    tasks += len(os.listdir(f"/proc/{process}/task"))
    return tasks


def limit_time(seconds: float, altogether: float, stack: TextIO) -> None:
    """End this process when its time is over, also inside a call of NumPy.

    Args:
        seconds: The limit on processor time, where the system has a timer of it.
        altogether: The limit on time by the clock.
        stack: A file to which the lines that are running then are written.
    """
    faulthandler.dump_traceback_later(altogether, exit=True, file=stack)
    if HAS_TIMER:
        # the handler writes the stack, and then the signal ends the process as it would without a handler
        faulthandler.register(signal.SIGPROF, file=stack, chain=True)
        signal.setitimer(signal.ITIMER_PROF, seconds)
