"""Atomic writes: a crash at any instant leaves either the old file or the new one.

Every file that the package writes goes through this module. The exceptions, such as the log of a run, to
which lines are appended, are listed with their reasons in `tests/storage/test_writers.py`.
"""

import contextlib
import errno
import hashlib
import os
import re
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from npformer.errors import UserError

try:
    import fcntl
except ImportError:  # Windows, which refuses to rename a file that another process has open
    fcntl = None  # type: ignore[assignment]

SYSTEM_FOLDERS = ("/dev", "/proc/self/fd")  # whose links name what is open, such as /dev/stdout
PAGES = (".html", ".htm")  # the endings of the names of web pages
_LONGEST_NAME = 255  # bytes, on the file systems of Linux, macOS and Windows
_ENDING = ".partial"  # of the names of temporary files
_RANDOM_BYTES = 6  # in such a name
_TEMPORARY = re.compile(rf"\..+\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}{re.escape(_ENDING)}", re.DOTALL)
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the content of a file.

    The data are written to a temporary file in the same folder, which has a name of its own for each write,
    and flushed to the disk. Then the temporary file is renamed, which happens completely or not at all. If
    anything fails, or Ctrl-C or SIGTERM arrives, the temporary file is removed. What a killed process left is
    removed by the next write of the same file.

    An existing file keeps its permissions. A symbolic link stays one: the file that it points to is replaced,
    unless it lies outside the folder of the link. A device or a pipe, such as /dev/null, is written to
    directly.

    Raises:
        OSError: If the file cannot be written. It then has its old content.
    """
    if is_device(path):  # a rename would replace the device
        path.write_bytes(data)
        return
    refuse_link_outside(path)
    path = Path(os.path.realpath(path))
    _require_permission(path)
    with _temporary_file(path, data) as temporary:
        os.replace(temporary, path)
    _sync_folder(path.parent)


def refuse_link_outside(path: Path) -> None:
    """Raise OSError if a path is a symbolic link to a file outside its folder.

    A folder from a stranger may hold links under the names that npformer writes.
    """
    folder, target = (os.path.realpath(each) for each in (path.parent, path))
    is_own = Path(target).is_relative_to(folder) or folder in SYSTEM_FOLDERS  # /dev/stdout is a link too
    if path.is_symlink() and not is_own and not path.is_char_device():  # such as /dev/null
        raise OSError(errno.ELOOP, f"{path.name} is a link to {target}, outside its folder", str(path))


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
        _try_to_write_beside(folder / "file")


def require_folder_place(folder: Path, *, advice: str = "give another folder") -> None:
    """Check that a folder can probably be made, or files written there, before minutes of work.

    Args:
        folder: The folder.
        advice: The end of the error message.

    Raises:
        UserError: If it is a file, or if the folder above it that exists cannot be written to.
    """
    with explain_os_errors(folder, "written", advice):
        folder = folder.absolute()
        _try_to_write_beside(next(each for each in (folder, *folder.parents) if each.exists()) / "file")


def require_place(path: Path, *, advice: str = "give another file", endings: tuple[str, ...] = ()) -> None:
    """Check that a file can probably be written, before minutes of work.

    Args:
        path: The file.
        advice: The end of the error message.
        endings: Those that the name may have, so that no file of another kind is replaced. () allows any.

    Raises:
        UserError: If it is a folder, if its folder does not exist or cannot be written to, or if its name has
            another ending.
    """
    if path.is_dir():
        raise UserError(f"{path} cannot be written (it is a folder): {advice}")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written (there is no folder {path.parent}): {advice}")
    if endings and path.suffix.lower() not in endings and not is_device(path):
        raise UserError(
            f"{path} cannot be written (its name does not end in {' or '.join(endings)}): {advice}"
        )
    with explain_os_errors(path, "written", advice):
        _require_permission(path)
        if not is_device(path):
            refuse_link_outside(path)
            _try_to_write_beside(Path(os.path.realpath(path)))


@contextlib.contextmanager
def explain_os_errors(path: Path | str, verb: str, advice: str) -> Iterator[None]:
    """Convert an OSError to a UserError of the form "PATH cannot be VERB (REASON): ADVICE".

    Args:
        path: The file or folder, or a noun for it.
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


def is_temporary(path: Path) -> bool:
    """Return whether a path has the name of a temporary file of this module."""
    return path.name.startswith(".") and path.name.endswith(_ENDING)


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process is in this context for the same folder: to read a file, and replace it.

    Nothing is locked on Windows, on file systems without locks, and if there is no such folder.
    """
    descriptor = None
    with contextlib.suppress(OSError):
        if fcntl is not None:
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_device(path: Path) -> bool:
    """Return whether a path names something else than a file or a folder, such as a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _beginning(path: Path) -> str:
    """Return how the names of all temporary files of a file begin."""
    name = f".{path.name}."
    if len(os.fsencode(name)) > _LONGEST_NAME - len(_ENDING) - 2 * _RANDOM_BYTES:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()}."
    return name


def _new_temporary_path(path: Path) -> Path:
    return path.with_name(f"{_beginning(path)}{os.urandom(_RANDOM_BYTES).hex()}{_ENDING}")


def _try_to_write_beside(path: Path) -> None:
    """Raise OSError if no file can be made beside a path, whatever the system says of permissions."""
    temporary = _new_temporary_path(path)
    with open(temporary, "xb"):
        temporary.unlink()


@contextlib.contextmanager
def _temporary_file(path: Path, data: bytes) -> Iterator[Path]:
    """Write data and the permissions of `path` to a temporary file, and remove it if it still exists then.

    The file is locked until it is closed, also by the end of the process. A process that removes abandoned
    files may find it before it is locked, so it is made anew until one is locked and still there.
    """
    remove_abandoned(path.parent, _beginning(path))
    while True:
        temporary = _new_temporary_path(path)
        with open(temporary, "xb") as file, _removed_on_signals(temporary):
            try:
                with contextlib.suppress(OSError):  # of a file system without locks
                    if fcntl is not None:
                        fcntl.flock(file, fcntl.LOCK_EX)
                if not temporary.exists():
                    continue
                file.write(data)
                file.flush()
                _copy_permissions(path, temporary)
                os.fsync(file.fileno())  # without this, a power cut could leave an empty file
                if fcntl is None:
                    file.close()
                yield temporary
                return
            finally:  # after Ctrl-C too
                with contextlib.suppress(OSError):
                    temporary.unlink()


def remove_abandoned(folder: Path, beginning: str = ".") -> None:
    """Remove the temporary files that killed processes have left in a folder: those that nobody has locked.

    Args:
        folder: The folder.
        beginning: How the names of these files begin. By default, the temporary files of all files count.
    """
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            is_temporary_file = entry.name.startswith(beginning) and _TEMPORARY.fullmatch(entry.name)
            if is_temporary_file and entry.is_file(follow_symlinks=False):
                _remove_unlocked(Path(entry.path))


def _remove_unlocked(temporary: Path) -> None:
    """Remove a temporary file, unless a process writes to it."""
    with contextlib.suppress(OSError):
        if fcntl is None:
            temporary.unlink()  # Windows refuses it for a file that is open
            return
        with open(temporary, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()


@contextlib.contextmanager
def _removed_on_signals(temporary: Path) -> Iterator[None]:
    """Remove the temporary file if a signal such as SIGTERM ends the process.

    Nothing changes outside the main thread, where Python allows no handlers, or for a signal that the program
    handles or ignores.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):
            temporary.unlink()
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
