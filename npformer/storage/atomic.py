"""Atomic writes: a crash at any instant leaves either the old file or the new one.

Every file that the package writes goes through this module. The exceptions, such as the log of a run, to
which lines are appended, are listed with their reasons in `tests/storage/test_writers.py`.
"""

import contextlib
import errno
import hashlib
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from npformer.errors import UserError

try:
    import fcntl
except ImportError:  # Windows, which refuses to rename a file that another process has open
    fcntl = None  # type: ignore[assignment]

_LONGEST_NAME = 255  # bytes, on the file systems of Linux, macOS and Windows
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the content of a file.

    The data are written to a temporary file in the same folder and flushed to the disk. Then the temporary
    file is renamed, which happens completely or not at all. A second process that writes the same file waits
    for the first one, except on Windows. If anything fails, or Ctrl-C or SIGTERM arrives, the temporary file
    is removed. An existing file keeps its permissions, and a symbolic link stays one: the file that it points
    to is replaced. A device or a pipe, such as /dev/null, is written to directly.

    Raises:
        OSError: If the file cannot be written. It then has its old content.
    """
    if path.exists() and not path.is_file() and not path.is_dir():  # a rename would replace the device
        path.write_bytes(data)
        return
    path = Path(os.path.realpath(path))
    _require_permission(path)
    with _temporary_file(path, data) as temporary:
        os.replace(temporary, path)
    _sync_folder(path.parent)


def create_atomically(path: Path, data: bytes) -> None:
    """Write a new file, completely or not at all.

    Raises:
        FileExistsError: If the file exists.
        OSError: If the file cannot be written.
    """
    with _temporary_file(path, data) as temporary:
        try:
            os.link(temporary, path)  # unlike a rename, a link never replaces a file
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            os.replace(temporary, path)
    _sync_folder(path.parent)


def write_file(path: Path, data: bytes, *, advice: str = "give another file") -> None:
    """Replace the content of a file as write_atomically does, with a UserError if that fails.

    Args:
        path: The file.
        data: Its content.
        advice: The end of the error message.

    Raises:
        UserError: If the file cannot be written. It then has its old content.
    """
    with explain_os_errors(path, "written", advice):
        write_atomically(path, data)


def make_folder(folder: Path, *, advice: str = "give another folder") -> None:
    """Make a folder, with those above it, unless it exists, and check that files can be written there.

    Args:
        folder: The folder.
        advice: The end of the error message.

    Raises:
        UserError: If it cannot be made or written to.
    """
    with explain_os_errors(folder, "written", advice):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def require_place(path: Path, *, advice: str = "give another file") -> None:
    """Check that a file can probably be written, before minutes of work.

    Args:
        path: The file.
        advice: The end of the error message.

    Raises:
        UserError: If it is a folder, or if its folder does not exist or cannot be written to.
    """
    if path.is_dir():
        raise UserError(f"{path} cannot be written (it is a folder): {advice}")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written (there is no folder {path.parent}): {advice}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{path} cannot be written (Permission denied): {advice}")


@contextlib.contextmanager
def explain_os_errors(path: Path, verb: str, advice: str) -> Iterator[None]:
    """Convert an OSError to a UserError of the form "PATH cannot be VERB (REASON): ADVICE".

    Args:
        path: The file or folder.
        verb: The past participle of the attempt, such as "written".
        advice: The end of the message.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} cannot be {verb} ({reason(error)}): {advice}") from None


def reason(error: Exception) -> str:
    """Return the reason of an error without its number and path, such as "No space left on device"."""
    return getattr(error, "strerror", None) or str(error)


def temporary_path(path: Path) -> Path:
    """Return the path of the temporary file.

    It is always the same for a file, so that the next write overwrites what a killed process left. A lock
    keeps two processes from writing to it at the same time.
    """
    name = f".{path.name}.partial"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()}.partial"
    return path.with_name(name)


@contextlib.contextmanager
def _temporary_file(path: Path, data: bytes) -> Iterator[Path]:
    """Write data and the permissions of `path` to a temporary file, and remove it if it still exists then."""
    temporary = temporary_path(path)
    with _locked(temporary) as file, _removed_on_signals(file, temporary):
        try:
            if file.tell():  # a killed process left it, and it could not be emptied before the lock
                file.truncate(0)
            file.write(data)
            file.flush()
            _copy_permissions(path, temporary)
            os.fsync(file.fileno())  # without this, a power cut could leave an empty file
            if fcntl is None:
                file.close()
            yield temporary
        finally:  # after Ctrl-C too
            _remove(file, temporary)


@contextlib.contextmanager
def _locked(temporary: Path) -> Iterator[BinaryIO]:
    """Open the temporary file, and wait until no other process writes to it."""
    while True:
        with open(temporary, "ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            # if the path names another file now, the process that held the lock has renamed this one
            if fcntl is None or _is_at(file, temporary):
                yield file
                return


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Return whether the path still names this open file."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _remove(file: BinaryIO, temporary: Path) -> None:
    """Remove the temporary file, unless it was renamed and the name belongs to another process now."""
    with contextlib.suppress(OSError):
        if fcntl is None or _is_at(file, temporary):
            temporary.unlink()


@contextlib.contextmanager
def _removed_on_signals(file: BinaryIO, temporary: Path) -> Iterator[None]:
    """Remove the temporary file if a signal such as SIGTERM ends the process.

    Nothing changes outside the main thread, where Python allows no handlers, or for a signal that the program
    handles or ignores.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        _remove(file, temporary)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # the process ends, as it would have

    handled = []
    if threading.current_thread() is threading.main_thread():
        handled = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in handled:
            signal.signal(number, on_signal)
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def _require_permission(path: Path) -> None:
    """Raise PermissionError for a write-protected file, which a rename would replace."""
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _copy_permissions(path: Path, temporary: Path) -> None:
    """Give the temporary file the permissions of an existing file."""
    with contextlib.suppress(OSError):  # no such file, or a file system without permissions
        os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    """Flush the new name to the disk."""
    # Windows cannot open folders, and some network file systems cannot sync them
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
