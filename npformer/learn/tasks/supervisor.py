"""The supervisor: a process that limits a learner's code, and ends every process that it started.

On Linux the learner's processes are in a namespace of their own where the system allows it: they cannot see
the supervisor, and all end with the first process of the namespace. The supervisor is also a child
subreaper: a descendant whose own parent has ended becomes its child, also if it left its session (setsid) or
forked twice. So it finds and ends all of them. On other systems it ends the process group, which such a
process may have left.

The limits of the learner's process (see limits.py) stop it in the line that runs, but code can clear timers,
and they do not see shared memory or other processes. So the supervisor measures what all processes use.

Without a namespace the learner's code can send signals to the supervisor and to npformer itself, which run
under the same user. The learner's own process then ends with the supervisor. A program that forks without end
is stopped by a limit on the number of processes, from which the system exempts root.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from npformer.language import say
from npformer.learn.tasks.confinement import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    enter_namespaces,
    prctl,
)

STARTUP = 60.0  # additional seconds for the child to start and to end, which is slow on a busy machine
MOST_PROCESSES = 32
PATROL = 0.1  # seconds between two measurements, which are more frequent where little memory is left
LEAST = 0.05  # of this time
MARGIN, MORE = 1.2, 0.3  # the factor and the seconds by which the supervisor waits longer than the process
UNCOUNTED = 100 << 20  # bytes that a process may reserve and not fill: Python reserves 70 MB at its start
FAREWELL = 30.0  # the largest number of seconds for which the supervisor tries to end processes


class Limits(NamedTuple):
    """The limits on what the learner's processes use together once the learner's code runs."""

    seconds: float  # of processor time
    altogether: float  # seconds by the clock
    memory: int  # bytes


class _Used(NamedTuple):
    """The time and the memory that all processes have used so far."""

    seconds: float
    memory: int


def fork_under_supervision(limits: Limits, report: Callable[[str], None], *, isolated: bool) -> int:
    """Fork, and return in the new process. The old one becomes its supervisor and never returns.

    The supervisor ends all descendants once the new process has ended, has exceeded a limit or has started
    too many processes, or once the standard input is closed, which happens at the latest when the parent
    ends. Then it ends in the same way as the new process: with its status or by the same signal.

    Args:
        limits: The limits.
        report: A function that takes a sentence about the reason why the processes were ended.
        isolated: Give the processes no network, and numbers of their own, where the system allows it.

    Returns:
        A file descriptor to close when the learner's code begins: the limits apply from then on.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    begins, begun = os.pipe()
    ends, ended = os.pipe()
    has_namespace = isolated and enter_namespaces()
    worker = os.fork()
    if worker == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(begins)
        os.close(ends)
        if has_namespace:
            _fork_from_first_process(ended, begun)
        os.close(ended)
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return begun
    os.close(begun)
    os.close(ended)
    status, why = _watch(worker, limits, begins)
    _end_descendants(worker)
    if why:
        report(why)
    elif inner := os.read(ends, 16):
        status = int(inner)
    _end_like(status)
    raise AssertionError


def _fork_from_first_process(ended: int, begun: int) -> None:
    """Fork, and return in the new process. The old one, the first of its namespace, waits for it and ends.

    The first process gets no signals from its namespace, and the kernel ends all others with it.

    Args:
        ended: A file descriptor to which the status of the new process is written.
        begun: A file descriptor that only the new process keeps.
    """
    worker = os.fork()
    if worker == 0:
        return
    os.close(begun)
    while True:
        process, status = os.wait()
        if process == worker:
            os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)


def _watch(worker: int, limits: Limits, begins: int) -> tuple[int, str]:
    """Wait for the worker. Return its status (negative for a signal), and why it must be ended, or ""."""
    with contextlib.suppress(AttributeError, OSError):  # of systems without it, and of users other than root
        # before a thousand processes that run, too: the limit on their number does not hold for root
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    wakes = [0, begins]  # the standard input, and the pipe that the worker closes
    with contextlib.suppress(AttributeError, OSError):  # of systems without it
        wakes.append(os.pidfd_open(worker))  # readable once the worker has ended
    start, end, patrol = _Used(0, 0), time.monotonic() + STARTUP, PATROL
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)  # the worker, or a process that has lost its own parent
        if ended == worker:
            return os.waitstatus_to_exitcode(status), ""
        if ended:
            continue
        ready = select.select(wakes, [], [], patrol)[0]
        if 0 in ready:
            return -signal.SIGKILL, say("the check was interrupted")
        processes = _descendants()
        if begins in ready:
            wakes.remove(begins)
            start, end = _used(processes), time.monotonic() + MARGIN * limits.altogether + MORE
        why = ""
        if begins not in wakes:
            used = _used(processes)
            why = _excess(processes, used, start, limits)
            patrol = PATROL * max(LEAST, 1 - (used.memory - start.memory) / limits.memory)
        if time.monotonic() > end:
            why = say("it took too long")
        if why:
            return -signal.SIGKILL, why


def _excess(processes: list[int], used: _Used, start: _Used, limits: Limits) -> str:
    """Return which limit the processes exceed that have used so much since the start, or ""."""
    if len(processes) > MOST_PROCESSES:
        return say("it started more than {most} processes", most=MOST_PROCESSES)
    if used.seconds - start.seconds > MARGIN * limits.seconds + MORE:
        return say(
            "all its processes together ran for more than {seconds:g} seconds of processor time",
            seconds=limits.seconds,
        )
    if used.memory - start.memory > limits.memory:
        return say(
            "all its processes together took more than {value:,} MB of memory", value=limits.memory >> 20
        )
    return ""


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
            for fields in _fields(int(process)):
                children.setdefault(int(fields[1]), []).append(int(process))
    found = list(children.get(os.getpid(), []))
    for descendant in found:  # the list grows while it is read
        found += children.get(descendant, [])
    return found


def _fields(process: int) -> Iterator[list[bytes]]:
    """Yield what the system says about a process that exists, from its state on (`man 5 proc_pid_stat`)."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
        # "12 (name) S 7 ...": the parent follows the name, which may hold brackets itself
        yield file.read().rpartition(b")")[2].split()


def _used(processes: list[int]) -> _Used:
    """Return what these processes, and those that have ended and were waited for, have used."""
    times = os.times()
    ticks = sum(
        sum(map(int, fields[11:15]))  # of the process and of its children, for user and system
        for process in processes
        for fields in _fields(process)
    )
    ticked = ticks / os.sysconf("SC_CLK_TCK")
    return _Used(times.children_user + times.children_system + ticked, sum(map(_memory, processes)))


def _memory(process: int) -> int:
    """Return the bytes that a process has reserved or filled, and those that it uses of shared memory.

    What is reserved is known before the process fills it. Pages that several processes share count for each:
    to find out which ones those are takes seconds while thirty processes run.
    """
    sizes = {b"VmData": 0, b"RssAnon": 0, b"RssShmem": 0}
    with contextlib.suppress(OSError), open(f"/proc/{process}/status", "rb") as file:
        for line in file:
            name, _, value = line.partition(b":")
            if name in sizes:
                sizes[name] = int(value.split()[0]) << 10  # from kB
    reserved, filled, shared = sizes.values()
    return max(reserved - UNCOUNTED, filled) + shared


def _end_like(status: int) -> None:
    """End this process with the status, or by the signal if it is negative."""
    if status < 0:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        time.sleep(1)  # the signal arrives at once; the process does not go on
    os._exit(status if status >= 0 else 1)
