"""A store of what takes long to make for the site: the outputs of lessons, by the content that makes them."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from npformer.learn.site.markdown import Files
from npformer.storage.places import user_folder

PACKAGE = Path(__file__).parents[2]
LARGEST = "500M"


class Job(NamedTuple):
    """A piece of the work that takes long.

    Args:
        language: The language of the documents that it makes.
        make: Makes the documents and pictures, in any process.
        key: What the result depends on beside the package, or "" if it is not stored.
    """

    language: str
    make: Callable[[], Files]
    key: str


def memory() -> Any:
    """Return the store, or one that stores nothing if its folder cannot be made."""
    from joblib import Memory

    folder = user_folder("XDG_CACHE_HOME", "~/.cache") / "site"
    try:
        return Memory(folder if folder.is_absolute() else None, verbose=0, compress=True)
    except OSError:
        return Memory(None, verbose=0)  # the site takes longer


def stored(key: str, make: Callable[[], Files]) -> Files:
    """Return what a function makes, from the store if it was made before with the same package and key."""
    made: Files = memory().cache(_call, ignore=["make"])(f"{_package()} {key}", make)
    return made


def _call(key: str, make: Callable[[], Files]) -> Files:
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
