"""Ask the terminal behind an output stream what it can show: it answers as if its answer were typed."""

import os
import re
import select
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

if sys.platform != "win32":
    import fcntl
    import termios
    import tty

PATIENCE = 1.0  # seconds; terminals answer within milliseconds, and over a slow network within half a second
DEVICE_ATTRIBUTES = "\033[c"  # every terminal answers this question
LAST_ANSWER = re.compile(rb"\033\[\?[\d;]*c")


def ask(stream: IO[str], questions: str, patience: float = PATIENCE) -> str | None:
    """Return the answers of the terminal that shows a stream.

    The terminal is asked only if this process may read from it: not from the background, and not on Windows.
    While it answers, keys are not echoed, and they are lost. So a terminal whose keys wait to be read is not
    asked, because the reader is typing ahead.

    Args:
        stream: An output stream.
        questions: Escape sequences that terminals without an answer ignore. DEVICE_ATTRIBUTES is asked at
            the end, and its answer shows that all others have arrived.
        patience: The seconds to wait for the last answer.

    Returns:
        The answers, "" if the last one does not come, or None if the terminal was not asked because keys
        were pressed before: ask again later.
    """
    if sys.platform == "win32":
        return ""
    try:
        with _terminal(stream) as terminal, _unechoed(terminal):
            if _is_readable(terminal, 0):
                return None
            stream.flush()
            os.write(terminal, (questions + DEVICE_ATTRIBUTES).encode("ascii"))
            return _read_answers(terminal, time.monotonic() + patience)
    except (OSError, ValueError, termios.error):  # no terminal, or it was closed
        return ""


def cell_of_window(stream: IO[str]) -> tuple[int, int] | None:
    """Return the width and height of a letter in pixels as the system knows them, or None if it does not."""
    if sys.platform == "win32":
        return None
    try:
        answer = fcntl.ioctl(stream.fileno(), termios.TIOCGWINSZ, bytes(8))
    except (OSError, ValueError):
        return None
    rows, columns, width, height = struct.unpack("HHHH", answer)
    if min(rows, columns) == 0 or width < columns or height < rows:
        return None
    return width // columns, height // rows


@contextmanager
def _terminal(stream: IO[str]) -> Iterator[int]:
    """Open the terminal of a stream for reading and writing, and yield its descriptor.

    Raises:
        OSError: If there is none, or if this process is in the background and would be stopped.
    """
    descriptor = os.open(os.ttyname(stream.fileno()), os.O_RDWR | os.O_NOCTTY)
    try:
        if os.tcgetpgrp(descriptor) != os.getpgrp():
            raise OSError("this process runs in the background")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _unechoed(terminal: int) -> Iterator[None]:
    """Pass keys on at once and without an echo, for a while. Ctrl-C still interrupts."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)  # NOW: keys that were pressed before are kept
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _read_answers(terminal: int, end: float) -> str:
    """Return what arrives up to the last answer, or "" if that has not arrived at a time."""
    answers = b""
    while not LAST_ANSWER.search(answers):
        if not _is_readable(terminal, max(end - time.monotonic(), 0)):
            return ""
        piece = os.read(terminal, 1024)
        if not piece:
            return ""
        answers += piece
    return answers.decode("ascii", errors="replace")


def _is_readable(terminal: int, seconds: float) -> bool:
    ready, _, _ = select.select([terminal], [], [], seconds)
    return bool(ready)
