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
    for number in _signals():
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _end)
    sys.unraisablehook = _repeat


def _signals() -> list[int]:
    """Return the signals that end a program. Windows has no SIGHUP."""
    return [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _end(signum: int, frame: FrameType | None) -> None:
    _received.append(signum)
    if signum == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signum)


def _repeat(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat a signal whose exception Python has dropped, because it struck a destructor or a callback."""
    if not _received or not isinstance(unraisable.exc_value, (KeyboardInterrupt, SystemExit)):
        sys.__unraisablehook__(unraisable)
    elif hasattr(signal, "setitimer"):  # a little later, since an exception raised here would be dropped too
        signal.signal(signal.SIGALRM, lambda signum, frame: _end(_received[0], frame))
        signal.setitimer(signal.ITIMER_REAL, 0.01)


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
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _signals():
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)
