"""The output of all commands: lines, data and notes as text, a console, and standard streams that may fail.

Text from outside (sentences, paths, learners' output, model cards) is printed as text. On a line and on the
console, characters that would steer the terminal are shown as backslash escapes. Data, such as translations,
pass through a pipe unchanged and are shown in the same way on a terminal.
"""

import codecs
import contextlib
import errno
import io
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from npformer.cli.help_text import wrap
from npformer.cli.own_command import as_typed
from npformer.escaping import escape, printable

if TYPE_CHECKING:
    from npformer.learn.console import TextConsole

OUTPUT_FORMAT = 1  # of the rows that commands print with --json


# ---------------------------------------------------------------------------------------------------------
# Printing


def console(*, quiet: bool = False, stderr: bool = False) -> "TextConsole":
    """Return a console on a standard stream, wide enough for every table if that is not a terminal."""
    from npformer.learn.console import TextConsole  # rich takes 50 ms to load, and --help does without

    stream = sys.stderr if stderr else sys.stdout
    return TextConsole(width=None if stream.isatty() else 120, quiet=quiet, stderr=stderr)


def note(text: str) -> None:
    """Print one line on standard error, beside the output proper."""
    print(f"npformer: {printable(as_typed(text))}", file=sys.stderr)


def print_line(text: str, *, margin: int = 0) -> None:
    """Print one line on standard output, whatever is in it. On a terminal, a long one is broken at spaces.

    Args:
        text: The line.
        margin: The number of spaces before the parts of a broken line, but for the first.
    """
    text = printable(text)
    if sys.stdout.isatty():
        text = "\n".join(wrap(text, shutil.get_terminal_size().columns, margin=" " * margin))
    print(text)


def print_lines(text: str) -> None:
    """Print a text of several lines on standard output."""
    print(printable(text, keep="\n\t"))


def print_data(text: str, end: str = "\n") -> None:
    """Print data on standard output, such as a translation or JSON, and pass it on at once.

    A pipe or a file gets the text as it is, and a terminal gets the text of `print_lines`. Characters that
    the encoding of standard output lacks, as lone surrogates always are, become backslash escapes.

    Args:
        text: The data, or a piece of them.
        end: The text after the data: "" if other pieces follow.
    """
    if sys.stdout.isatty():
        text = printable(text, keep="\n\t")
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, REPLACED).decode(encoding), end=end, flush=True)


def versioned_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects of a command's --json output, each with the version of their format."""
    return [{"format": OUTPUT_FORMAT, **row} for row in rows]


# ---------------------------------------------------------------------------------------------------------
# Encodings without the characters of our text

REPLACED = "npformer.replaced"  # the name of the error handler
_EQUIVALENTS = {
    "→": "->", "…": "...", "–": "-", "—": "-", "−": "-", "×": "x", "·": ".", "∙": ".", "√": "sqrt",
    "’": "'", "“": '"', "”": '"', "▸": ">", "▷": ">", "\u00a0": " ",
    **dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True)),  # a bar becomes its height
}  # fmt: skip


def _replace_missing(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks by ASCII signs, or else by backslash escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_EQUIVALENTS.get(character) or escape(character) for character in missing), error.end


codecs.register_error(REPLACED, _replace_missing)


# ---------------------------------------------------------------------------------------------------------
# Standard streams that may be closed, full, or read by a program that ends

MAX_SIZE = 10_000  # columns or lines of a terminal


class OutputError(BaseException):
    """Standard output cannot be written. The command ends, and `guard_streams` says why.

    It is no Exception, so that nothing which handles the errors of files or of users' code catches it.
    """


class _GuardedStream(io.RawIOBase):
    """Passes bytes on to a standard stream until that fails, and drops them from then on.

    So neither the code that cleans up after an error nor the end of Python fails again.

    Args:
        raw: The stream, or None if it was closed before the command began.
        essential: True for standard output, whose failure raises OutputError once, in the main thread: in
            the thread of a progress bar nothing could handle it. False for standard error.
    """

    def __init__(self, raw: Any, *, essential: bool) -> None:
        self.stream = raw
        self.essential = essential
        self.error: OSError | None = None
        self.raised = False

    def write(self, data: Any) -> int | None:
        if self.error is None:
            try:
                if self.stream is None:
                    raise OSError(errno.EBADF, "it is closed")
                written: int | None = self.stream.write(data)
                return written
            except OSError as error:
                self.error = error
        if self.essential and not self.raised and threading.current_thread() is threading.main_thread():
            self.raised = True
            raise OutputError
        return len(data)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream is not None and bool(self.stream.isatty())

    def fileno(self) -> int:
        if self.stream is None:
            raise OSError(errno.EBADF, "it is closed")
        return int(self.stream.fileno())


def guard_streams(work: Callable[[], int]) -> int:
    """Run a command on guarded standard streams and return its exit status.

    If the reader of standard output has ended, as `head` does, the command ends too, with status 0. If
    standard output is closed, or the disk is full, the command ends with one sentence and status 2. Messages
    that standard error cannot take are dropped, and the command goes on.

    Args:
        work: The command. It returns its exit status.
    """
    _occupy_descriptors()
    _mend_environment()
    with _guarded("stderr", essential=False), _guarded("stdout", essential=True) as guard:
        try:
            status = work()
            sys.stdout.flush()
        except OutputError:
            status = 2
        except SystemExit:  # argparse has printed the help, or a mistake
            with contextlib.suppress(OutputError):
                sys.stdout.flush()
            if guard is None or guard.error is None:
                raise
            status = 2
        if guard is None or guard.error is None:
            return status
        if isinstance(guard.error, BrokenPipeError):
            return 0
        why = guard.error.strerror or "write error"
        note(
            f"standard output cannot be written ({why}): its text is not complete; give another place for it"
        )
        return 2


@contextlib.contextmanager
def _guarded(name: str, *, essential: bool) -> Iterator[_GuardedStream | None]:
    """Replace sys.stdout or sys.stderr for a while by a stream that may fail.

    Yields:
        The guard, or None for a stream without a file below it, such as that of a test or a notebook.
    """
    old: TextIO | None = getattr(sys, name)
    buffer = getattr(old, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if old is not None and not isinstance(raw, io.RawIOBase):
        yield None
        return
    if old is not None:
        old.flush()
    guard = _GuardedStream(raw, essential=essential)
    new = io.TextIOWrapper(
        io.BufferedWriter(guard),
        encoding=getattr(old, "encoding", "utf-8"),
        errors=REPLACED,
        line_buffering=not essential or guard.isatty() or getattr(old, "write_through", False),
    )
    setattr(sys, name, new)
    try:
        yield guard
    finally:
        with contextlib.suppress(OutputError):
            new.flush()
        setattr(sys, name, old)


def _occupy_descriptors() -> None:
    """Open closed standard streams on the null device, so that no file of ours becomes one of them."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the system takes the lowest descriptor that is free
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - it stays open


def _mend_environment() -> None:
    """Keep libraries quiet about the folders where they store files, and drop impossible terminal sizes."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it works in a temporary folder then
    if not os.path.isabs(os.path.expanduser("~")):  # matplotlib does not start without a home folder
        os.environ.setdefault("MPLCONFIGDIR", os.devnull)
    for name in ("COLUMNS", "LINES"):
        size = os.environ.get(name, "")
        if not (size.isascii() and size.isdigit() and 0 < int(size) < MAX_SIZE):
            os.environ.pop(name, None)
