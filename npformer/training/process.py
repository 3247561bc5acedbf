"""Settings of the process during training, for freed memory and for the signals that stop it."""

import ctypes
import mmap
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

# the constants are those of glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
HUGE_PAGES = 1 << 30  # the number of bytes at the start of the heap that get huge pages

# Ctrl-C, the end that a scheduler or a shutdown asks for, and the end of the terminal
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


def keep_freed_memory_in_process() -> bool:
    """Make malloc keep freed memory for the next arrays, in one heap for all threads.

    By default, the memory of large arrays returns to the operating system when they are freed, and the system
    has to provide and clear each page of the next array. A small model spends a tenth of its time on this.
    With one heap, a thread can use the memory that another one freed. The heap gets huge pages (see
    _prefer_huge_pages). Call this before threads start. It only has an effect with glibc, the usual C library
    of Linux.

    Returns:
        True if malloc accepted the settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc: Any = ctypes.CDLL(None)
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is None:  # another C library
        return False
    accepted = all(
        [
            mallopt(M_TRIM_THRESHOLD, -1),  # never return the end of the heap
            mallopt(M_MMAP_MAX, 0),  # allocate large arrays on the heap, too
            mallopt(M_ARENA_MAX, 1),  # one heap
        ]
    )
    if accepted:
        _prefer_huge_pages(libc)
    return accepted


def _prefer_huge_pages(libc: Any) -> None:
    """Ask the system for pages of 2 megabytes, not 4 kilobytes, at the start of the heap.

    The processor remembers the addresses of a limited number of pages, and looks up the others. With large
    pages, a training step of a small model takes about 5 % less time. For arrays of 4 megabytes or more,
    NumPy asks for large pages itself. Here, a part of the heap is allocated, marked and freed for later
    arrays. It takes no memory until arrays are written to it.
    """
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.free.argtypes = [ctypes.c_void_p]
    address = libc.malloc(HUGE_PAGES)
    if address is None:  # the process may not have so much memory
        return
    start = address + -address % mmap.PAGESIZE  # madvise takes whole pages
    libc.madvise(start, HUGE_PAGES - mmap.PAGESIZE, mmap.MADV_HUGEPAGE)
    libc.free(address)


@dataclass
class StopRequest:
    """The signal that asked a training run to stop, or None."""

    signum: int | None = None


@contextmanager
def interrupt_between_steps() -> Iterator[StopRequest]:
    """Handle Ctrl-C, SIGTERM and SIGHUP so that they never interrupt an update of the parameters.

    Inside the context, the first signal is only noted in the request that the context yields. The second one
    raises KeyboardInterrupt. A signal without a Python handler keeps its effect: a signal that the process
    ignores, as under nohup, and SIGTERM and SIGHUP in a program that has set no handler. The command line
    sets one. Nothing changes outside the main thread, where Python allows no signal handlers.
    """
    request = StopRequest()

    def on_signal(signum: int, frame: FrameType | None) -> None:
        if request.signum is not None:
            raise KeyboardInterrupt
        request.signum = signum

    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in STOPPING if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in numbers}
    handled = {number: handler for number, handler in before.items() if callable(handler)}
    for number in handled:
        signal.signal(number, on_signal)
    try:
        yield request
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
