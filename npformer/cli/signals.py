"""The end of the program by a signal, such as Ctrl-C: one line, the status that shells expect, no traceback.

This file is loaded before all others, so that a Ctrl-C during the imports ends in the same way. It therefore
imports little.
"""

import contextlib
import signal
import sys
from types import FrameType

_received: list[int] = []  # the signals that have asked this process to end


def handle_signals() -> None:
    """End the program cleanly on Ctrl-C, SIGTERM and SIGHUP. A signal that it ignores stays ignored.

    The handlers raise an exception, so that everything on the way is closed and temporary files are removed.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _end)


def _end(signum: int, frame: FrameType | None) -> None:
    _received.append(signum)
    if signum == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signum)


def was_stopped() -> bool:
    """Return whether a signal has asked this process to end.

    An exception after that is the interruption, whatever its type: compiled code that is interrupted, as when
    NumPy is imported, may raise ImportError or SystemError instead of KeyboardInterrupt.
    """
    return bool(_received)


def stopped() -> int:
    """Print that the program was stopped, and return the exit status: 130 for Ctrl-C."""
    let_signals_end()
    with contextlib.suppress(OSError):  # after SIGHUP there is no terminal
        print("npformer: stopped", file=sys.stderr, flush=True)
    return 128 + (_received[0] if _received else signal.SIGINT)


def let_signals_end() -> None:
    """Let a signal end the process at once and without a word, when nothing is left to do but to exit."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)
