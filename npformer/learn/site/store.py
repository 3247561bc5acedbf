"""A store of what takes long to make for the site: the outputs of lessons, by the content that makes them."""

import hashlib
import io
import os
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from npformer.errors import UserError
from npformer.learn.site.markdown import Files
from npformer.storage.atomic import make_folder, write_file

PACKAGE = Path(__file__).parents[2]


def store_folder() -> Path:
    """Return $XDG_CACHE_HOME/npformer/site. The default of the variable is ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    # the specification says to ignore a relative path
    folder = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~")) / ".cache"
    return folder / "npformer" / "site"


def stored(key: str, make: Callable[[], Files]) -> Files:
    """Return what a function makes, from the store if it was made before with the same content.

    Args:
        key: What distinguishes this from all else that is made with the same package.
        make: The function.
    """
    path = store_folder() / f"{hashlib.sha256(f'{_package()} {key}'.encode()).hexdigest()[:32]}.zip"
    found = _read(path)
    if found is not None:
        return found
    files, buffer = make(), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    try:
        make_folder(path.parent, advice="")
        write_file(path, buffer.getvalue(), advice="")
    except UserError:
        pass  # without the store, the site takes longer
    return files


def _read(path: Path) -> Files | None:
    """Return the files of an entry of the store, which is used now, or None if it is missing or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        os.utime(path)
    except (OSError, zipfile.BadZipFile, EOFError):
        return None
    return files


def forget_older_than(moment: float) -> None:
    """Remove the entries that were neither read nor written since a moment, a value of `time.time`."""
    for path in store_folder().glob("*.zip"):
        if path.stat().st_mtime < moment:
            path.unlink(missing_ok=True)


@cache
def _package() -> str:
    """Return a digest of all files of the package but its catalogs, and of the pictures of a checkout."""
    digest = hashlib.sha256()
    for path in [*sorted(PACKAGE.rglob("*")), *sorted((PACKAGE.parent / "figures").glob("*"))]:
        if path.is_file() and not {"__pycache__", "locale"} & set(path.parts):
            digest.update(path.relative_to(PACKAGE.parent).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()
