"""Atomic writes: a crash at any instant leaves either the old file or the new one."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the content of a file.

    The data are written to a temporary file in the same folder and flushed to the disk. Then the temporary
    file is renamed, which happens completely or not at all. If anything fails, the temporary file is removed.

    Raises:
        OSError: If the file cannot be written. It then has its old content.
    """
    # always the same name, so that the next write overwrites what a killed process left
    temporary = temporary_path(path)
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # without this, a power cut could leave an empty file
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """Return the path of the temporary file."""
    return path.with_name(f".{path.name}.partial")


def _sync_folder(folder: Path) -> None:
    """Flush the new name to the disk."""
    # Windows cannot open folders, and some network file systems cannot sync them
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
