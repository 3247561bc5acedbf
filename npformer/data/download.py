"""Downloads of the files of a corpus, which verify the checksum of every file."""

import errno
import hashlib
import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from npformer.errors import UserError
from npformer.storage.atomic import write_atomically

ATTEMPTS = 4
PAUSE = 0.5  # seconds before the second attempt; doubled before each further one
TIMEOUT = 30.0  # seconds without an answer after which an attempt fails
_CHUNK = 1 << 16
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # HTTP errors that are usually temporary
_ELSEWHERE = "name another address with --base-url, or a folder that has the files with --from"

Report = Callable[[int], None]  # a function that is called with the number of bytes received so far


class KnownFile(NamedTuple):
    """A file of a corpus: its path in the folder of the corpus, its size in bytes, and its SHA-256."""

    name: str
    size: int
    sha256: str

    def is_whole(self, folder: Path) -> bool:
        """Return True if the folder contains the complete file, with the right checksum.

        Raises:
            UserError: If the file cannot be read.
        """
        path = folder / self.name
        with _disk(path, "read"):
            return path.is_file() and path.stat().st_size == self.size and _sha256(path) == self.sha256


def fetch(
    file: KnownFile,
    base_url: str,
    folder: Path,
    *,
    report: Report = lambda received: None,
    attempts: int = ATTEMPTS,
    pause: float = PAUSE,
    timeout: float = TIMEOUT,
) -> bool:
    """Download a file from base_url/name to folder/name, where it appears when it is complete.

    The files of a corpus have a few megabytes at most, so an attempt that fails is repeated from the
    beginning of its file. In a later call, the files that are complete are not downloaded again.

    Args:
        file: The file.
        base_url: The address of the folder on the server.
        folder: The folder to write to.
        report: Called with the number of bytes so far.
        attempts: The number of attempts after which the download fails.
        pause: Seconds before the second attempt, doubled before each further one.
        timeout: Seconds without an answer after which an attempt fails.

    Returns:
        False if the folder had the complete file already.

    Raises:
        UserError: If the server has no such file or a different one, the network fails, or the folder cannot
            be written.
    """
    if file.is_whole(folder):
        report(file.size)
        return False
    url = f"{base_url.rstrip('/')}/{file.name}"
    if not re.fullmatch(r"https?://[!-~]+", url):
        raise UserError(f"{base_url!r} is not an address: give one that begins with https:// or http://")
    target = folder / file.name
    with _disk(target, "written"):
        target.parent.mkdir(parents=True, exist_ok=True)
    data, reason = b"", ""
    for attempt in range(attempts):
        time.sleep(pause * 2 ** (attempt - 1) if attempt else 0)
        data, reason = _receive(file, url, report, timeout)
        if not reason:
            break
    if reason:
        raise UserError(
            f"{url}: {reason}, after {len(data):,} of {file.size:,} bytes: "
            f"run the same command later, which continues the download, or {_ELSEWHERE}"
        )
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UserError(f"{url} is not the expected file (its SHA-256 differs): {_ELSEWHERE}")
    with _disk(target, "written"):
        write_atomically(target, data)
    return True


def take(file: KnownFile, source: Path, folder: Path, *, report: Report = lambda received: None) -> bool:
    """Copy a file from one folder to another.

    Args:
        file: The file.
        source: The folder to copy from.
        folder: The folder to copy to.
        report: Called with the number of bytes.

    Returns:
        False if the folder had the complete file already.

    Raises:
        UserError: If the source does not have the right file, or the folder cannot be written.
    """
    fresh = not file.is_whole(folder)
    if fresh:
        path, target = source / file.name, folder / file.name
        if not path.is_file():
            raise UserError(f"there is no file {path}: give a folder that contains the corpus, raw/ and tok/")
        if not file.is_whole(source):
            raise UserError(f"{path} is damaged (its SHA-256 differs): copy it again, or leave out --from")
        with _disk(target, "written"):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, path.read_bytes())
    report(file.size)
    return fresh


def _receive(file: KnownFile, url: str, report: Report, timeout: float) -> tuple[bytes, str]:
    """Return the data that the server sends, and the reason why some are missing, or ""."""
    data = bytearray()
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "npformer"})
        with urllib.request.urlopen(request, timeout=timeout) as response:
            length = response.headers.get("Content-Length", "")
            if length.isdecimal() and int(length) != file.size:
                raise UserError(
                    f"{url} is not the expected file: it has {int(length):,} bytes, not {file.size:,}; "
                    f"{_ELSEWHERE}"
                )
            # a server that does not send the length might never end
            while len(data) <= file.size and (chunk := response.read(_CHUNK)):
                data += chunk
                report(len(data))
    except UserError:
        raise
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return b"", _refused(refusal.code, url)
    except (ValueError, http.client.InvalidURL) as error:
        raise UserError(f"{url} is not an address ({error}): {_ELSEWHERE}") from None
    except (OSError, http.client.HTTPException) as error:  # no network, no such server, no answer
        if not data:
            return b"", f"no answer ({getattr(error, 'reason', error)})"
    return bytes(data), "the connection was cut" if len(data) < file.size else ""


def _refused(code: int, url: str) -> str:
    """Return the message of a temporary HTTP error, or raise UserError for a permanent one."""
    if code in _BUSY:
        return f"the server is busy (HTTP {code})"
    if code in (404, 410):
        raise UserError(f"there is no {url} (HTTP {code}): {_ELSEWHERE}")
    phrase = http.client.responses.get(code, "")
    raise UserError(f"{url} is refused (HTTP {code} {phrase}): {_ELSEWHERE}")


@contextmanager
def _disk(path: Path, verb: str) -> Iterator[None]:
    """Convert errors of the disk to UserError: a full disk, or missing permissions."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"the disk is full, {path} cannot be written: make room and run the same command again"
            ) from None
        raise UserError(f"{path} cannot be {verb} ({error.strerror}): check the permissions") from None


def _sha256(path: Path) -> str:
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
