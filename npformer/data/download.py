"""Downloads of files, which resume after an interruption and verify the checksum of every file."""

import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from npformer.errors import UserError
from npformer.storage.atomic import explain_os_errors, refuse_link_outside, write_atomically

ATTEMPTS = 4  # after this number of attempts in a row without new data, a download fails
PAUSE = 0.5  # seconds before the next attempt; doubled after each attempt without new data
TIMEOUT = 30.0  # seconds without an answer after which an attempt fails
_CHUNK = 1 << 16
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # HTTP errors that are usually temporary
_ELSEWHERE = "name another address with --base-url, or a folder that has the files with --from"

_explained = partial(explain_os_errors, advice="free some space or check the permissions, and run it again")

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
        with _explained(path, "read"):
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
    """Download a file from base_url/name to folder/name.

    The data so far are in name.part, and an interrupted download resumes from there, after a pause or in a
    later call. The file gets its name only when it is complete and its checksum is right.

    Args:
        file: The file.
        base_url: The address of the folder on the server.
        folder: The folder to write to.
        report: Called with the number of bytes so far.
        attempts: The number of attempts without new data after which the download fails.
        pause: Seconds before the second attempt, doubled after each one without new data.
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
    with _explained(target, "written"):
        refuse_link_outside(target)
    target = Path(os.path.realpath(target))  # a link stays a link
    part = part_of(target)
    with _explained(part, "written"):
        refuse_link_outside(part)
        part.parent.mkdir(parents=True, exist_ok=True)
    resumed = _size(part) > 0
    _complete(file, url, part, report, attempts, pause, timeout)
    if resumed and _sha256(part) != file.sha256:  # the old data may have been wrong: download all of it again
        part.unlink()
        _complete(file, url, part, report, attempts, pause, timeout)
    if _sha256(part) != file.sha256:
        part.unlink()
        raise UserError(f"{url} is not the expected file (its SHA-256 differs): {_ELSEWHERE}")
    with _explained(target, "written"):
        os.replace(part, target)
    return True


def require_any(files: Sequence[KnownFile], source: Path) -> None:
    """Raise UserError if a folder has none of the files."""
    if not any((source / file.name).is_file() for file in files):
        raise _no_file(source / files[0].name)


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
            raise _no_file(path)
        if not file.is_whole(source):
            raise UserError(f"{path} is damaged (its SHA-256 differs): copy it again, or leave out --from")
        with _explained(target, "written"):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, path.read_bytes())
    report(file.size)
    return fresh


def _no_file(path: Path) -> UserError:
    return UserError(f"there is no file {path}: give a folder that contains the corpus, raw/ and tok/")


def part_of(path: Path) -> Path:
    """Return the path of a download until it is complete."""
    return path.with_name(f"{path.name}.part")


def _complete(
    file: KnownFile, url: str, part: Path, report: Report, attempts: int, pause: float, timeout: float
) -> None:
    """Request data from the server until the part has all its bytes."""
    most, failures = _size(part), 0
    while _size(part) < file.size:
        reason = _receive(file, url, part, report, timeout)
        # An attempt succeeds only if the part is longer than ever before. Otherwise a server that always
        # starts from the beginning could be asked forever.
        failures = 0 if _size(part) > most else failures + 1
        most = max(most, _size(part))
        if failures == attempts:
            raise UserError(
                f"{url}: {reason}, after {_size(part):,} of {file.size:,} bytes: "
                f"run the same command later, which continues the download, or {_ELSEWHERE}"
            )
        if _size(part) < file.size:
            time.sleep(pause * 2**failures)


def _receive(file: KnownFile, url: str, part: Path, report: Report, timeout: float) -> str:
    """Append the data that the server sends to the part, and return the reason why data may be missing."""
    received = _size(part)
    headers = {"User-Agent": "npformer"} | ({"Range": f"bytes={received}-"} if received else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as refusal:
        return _refused(refusal, url, part)
    except (ValueError, http.client.InvalidURL) as error:
        raise UserError(f"{url} is not an address ({error}): {_ELSEWHERE}") from None
    except (OSError, http.client.HTTPException) as error:  # no network, no such server, no answer
        return f"no answer ({getattr(error, 'reason', error)})"
    with response:
        start, total = _extent(response)
        if total not in (None, file.size):
            raise UserError(
                f"{url} is not the expected file: it has {total:,} bytes, not {file.size:,}; {_ELSEWHERE}"
            )
        if start not in (0, received):
            part.unlink()
            return "the server sent a part of the file that was not requested"
        with _explained(part, "written"), open(part, "ab" if start else "wb") as out:
            for chunk in _chunks(response):
                out.write(chunk)
                start += len(chunk)
                report(start)
                if start >= file.size:  # a server that does not send the size might never end
                    break
            out.flush()
            os.fsync(out.fileno())
    return "the connection was cut"


def _refused(refusal: urllib.error.HTTPError, url: str, part: Path) -> str:
    """Return the message of a temporary HTTP error, or raise UserError for a permanent one."""
    code = refusal.code
    refusal.close()
    if code in _BUSY:
        return f"the server is busy (HTTP {code})"
    if code == 416:  # no data after the end of the part: the server's file is shorter
        part.unlink()
        raise UserError(f"{url} is not the expected file: it is shorter; {_ELSEWHERE}")
    if code in (404, 410):
        raise UserError(f"there is no {url} (HTTP {code}): {_ELSEWHERE}")
    phrase = http.client.responses.get(code, "")
    raise UserError(f"{url} is refused (HTTP {code} {phrase}): {_ELSEWHERE}")


def _extent(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """Return the position of a response's first byte in the file (or -1), and the file's size (or None)."""
    if response.status == 206:
        content = re.match(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if not content:
            return -1, None
        return int(content[1]), None if content[2] == "*" else int(content[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield the data that a server sends, until the data end or the connection is cut."""
    try:
        while chunk := response.read(_CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException):
        return


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
