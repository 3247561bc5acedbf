"""A store of what takes long to make for the site: the outputs of lessons, by the content that makes them."""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from npformer.learn.site.markdown import Files

PACKAGE = Path(__file__).parents[2]
LARGEST = "500M"
Job = Callable[[], Files]


def store_folder() -> Path:
    """Return the folder of what is stored. The default of $XDG_CACHE_HOME is ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    # the specification says to ignore a relative path
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "npformer" / "site"


def memory() -> Any:
    """Return the store, or None if its folder cannot be made."""
    from joblib import Memory

    try:
        return Memory(store_folder(), verbose=0, compress=True)
    except OSError:
        return None


def stored(key: str, make: Job) -> Files:
    """Return what a function makes, from the store if it was made before with the same package and key."""
    store = memory()
    if store is None:
        return make()  # without the store, the site takes longer
    files: Files = store.cache(_call, ignore=["make"])(f"{_package()} {key}", make)
    return files


def forget() -> None:
    """Remove from a store that has become large what was not used for the longest time."""
    if store := memory():
        store.reduce_size(bytes_limit=LARGEST)


def _call(key: str, make: Job) -> Files:
    """Return what a function makes. The store knows the result by the key."""
    return make()


@cache
def _package() -> str:
    """Return a digest of all files of the package but its catalogs, and of the pictures of a checkout."""
    digest = hashlib.sha256()
    for path in [*sorted(PACKAGE.rglob("*")), *sorted((PACKAGE.parent / "figures").glob("*"))]:
        if path.is_file() and not {"__pycache__", "locale"} & set(path.parts):
            digest.update(path.relative_to(PACKAGE.parent).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()
