"""Ctrl-C that never finds a parameter half updated."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_between_steps() -> Iterator[Callable[[], bool]]:
    """Inside, the first Ctrl-C only makes the function given answer True; the second one raises.

    Elsewhere than in the main thread, where Python lets nobody handle signals, nothing changes; nor does it
    for a process that was told to ignore Ctrl-C.
    """
    asked = threading.Event()

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield asked.is_set
        return
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
