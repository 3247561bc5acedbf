"""Settings of the process during training, for freed memory and for Ctrl-C."""

import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# from glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8


def keep_freed_memory_in_process() -> bool:
    """Make malloc keep freed memory for the next arrays, in one heap for all threads.

    By default, the memory of large arrays returns to the operating system when they are freed, and the system
    has to provide and clear each page of the next array. A small model spends a tenth of its time on this.
    With one heap, a thread can use the memory that another one freed. Call this before threads start.
    It only has an effect with glibc, the usual C library of Linux.

    Returns:
        True if malloc accepted the settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return False
    return all(
        [
            mallopt(M_TRIM_THRESHOLD, -1),  # never return the end of the heap
            mallopt(M_MMAP_MAX, 0),  # allocate large arrays on the heap, too
            mallopt(M_ARENA_MAX, 1),  # one heap
        ]
    )


@contextmanager
def interrupt_between_steps() -> Iterator[Callable[[], bool]]:
    """Handle Ctrl-C so that it never interrupts an update of the parameters.

    Inside the context, the first Ctrl-C makes the function that the context yields return True. The second
    one raises KeyboardInterrupt. Nothing changes outside the main thread, where Python allows no signal
    handlers, or in a process that ignores Ctrl-C.
    """
    interrupted = threading.Event()

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield interrupted.is_set
        return
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interrupted.is_set
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
