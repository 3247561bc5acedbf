"""Writing a file so that a crash at any instant leaves either the old one whole or the new one."""

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Put data in the place of what the file held.

    The data go to a temporary file beside it and to the disk, and only then take the name: a rename
    within a folder happens at once or not at all. Where anything fails, the temporary file is removed.
    Errors: OSError, with the file as it was before.
    """
    # always the same name: what a killed process left is overwritten the next time
    temporary = temporary_path(path)
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave the name on an empty file
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def temporary_path(path: Path) -> Path:
    """Where the data of a file wait until they are whole."""
    return path.with_name(f".{path.name}.partial")


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk; the file behind it is there already."""
    # Windows opens no folder, and some network file systems cannot sync one
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
