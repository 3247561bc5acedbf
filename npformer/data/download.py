"""Files from the network: what came is kept when the connection is cut, and only a right checksum counts."""

import errno
import hashlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from npformer.atomic import write_atomically
from npformer.errors import UserError

ATTEMPTS = 4  # in a row that bring nothing new
PAUSE = 0.5  # seconds before the next attempt, doubled by each that brought nothing new
TIMEOUT = 30.0  # seconds of silence
_CHUNK = 1 << 16
_BUSY = (408, 425, 429, 500, 502, 503, 504)  # HTTP's refusals that may be over in a moment
_ELSEWHERE = "name another address with --base-url, or a folder that has the files with --from"

Report = Callable[[int], None]  # hears how many bytes of the file are there


class KnownFile(NamedTuple):
    """A file of a corpus: its place below the corpus' folder, its size in bytes, its SHA-256."""

    name: str
    size: int
    sha256: str

    def is_whole(self, folder: Path) -> bool:
        """Whether it lies in this folder with the right content. Errors: UserError if it cannot be read."""
        path = folder / self.name
        with _disk(path, "read"):
            return path.is_file() and path.stat().st_size == self.size and _sha256(path) == self.sha256


def fetch(
    file: KnownFile,
    base_url: str,
    folder: Path,
    *,
    report: Report = lambda there: None,
    attempts: int = ATTEMPTS,
    pause: float = PAUSE,
    timeout: float = TIMEOUT,
) -> bool:
    """Bring a file from base_url/name to folder/name. Returns False where it was there already, whole.

    What came so far lies in name.part, and a download that was cut goes on from there, in this call after a
    pause or in a later one. Only when all of it is there and its checksum is right does it take its name.
    Errors: UserError for an address without the file or with another one, where the network fails as often as
    `attempts` says, and where the folder cannot take it.
    """
    if file.is_whole(folder):
        report(file.size)
        return False
    url = f"{base_url.rstrip('/')}/{file.name}"
    if not re.fullmatch(r"https?://[!-~]+", url):
        raise UserError(f"{base_url!r} is no address: give one that begins with https:// or http://")
    target, part = folder / file.name, part_of(folder / file.name)
    with _disk(part, "written"):
        part.parent.mkdir(parents=True, exist_ok=True)
    resumed = _size(part) > 0
    _complete(file, url, part, report, attempts, pause, timeout)
    if resumed and _sha256(part) != file.sha256:  # what lay there before may have been the fault: once more
        part.unlink()
        _complete(file, url, part, report, attempts, pause, timeout)
    if _sha256(part) != file.sha256:
        part.unlink()
        raise UserError(f"{url} is not the file it should be, its SHA-256 is another: {_ELSEWHERE}")
    with _disk(target, "written"):
        os.replace(part, target)
    return True


def take(file: KnownFile, source: Path, folder: Path, *, report: Report = lambda there: None) -> bool:
    """Copy a file from one folder to another. Returns False where it was there already, whole.

    Errors: UserError where the source lacks it or has it damaged, and where the folder cannot take it.
    """
    fresh = not file.is_whole(folder)
    if fresh:
        path, target = source / file.name, folder / file.name
        if not path.is_file():
            raise UserError(f"there is no file {path}: give a folder with raw/ and tok/ as published")
        if not file.is_whole(source):
            raise UserError(f"{path} is damaged, its SHA-256 is another: get it anew, or leave out --from")
        with _disk(target, "written"):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, path.read_bytes())
    report(file.size)
    return fresh


def part_of(path: Path) -> Path:
    """Where a download lies until it is whole."""
    return path.with_name(f"{path.name}.part")


def _complete(
    file: KnownFile, url: str, part: Path, report: Report, attempts: int, pause: float, timeout: float
) -> None:
    """Ask the server, again where it breaks off, until the part has all its bytes."""
    most, idle = _size(part), 0
    while _size(part) < file.size:
        fault = _receive(file, url, part, report, timeout)
        # only more than ever before is a step: a server that starts over each time must not go on for ever
        idle = 0 if _size(part) > most else idle + 1
        most = max(most, _size(part))
        if idle == attempts:
            raise UserError(
                f"{url}: {fault}, with {_size(part):,} of {file.size:,} bytes here: "
                f"try again later, it goes on from there, or {_ELSEWHERE}"
            )
        if _size(part) < file.size:
            time.sleep(pause * 2**idle)


def _receive(file: KnownFile, url: str, part: Path, report: Report, timeout: float) -> str:
    """Add to the part what the server sends of the rest. Returns what stopped it, should it not be all."""
    there = _size(part)
    headers = {"User-Agent": "npformer"} | ({"Range": f"bytes={there}-"} if there else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as refusal:
        return _refused(refusal, url, part)
    except (ValueError, http.client.InvalidURL) as error:
        raise UserError(f"{url} is no address ({error}): {_ELSEWHERE}") from None
    except (OSError, http.client.HTTPException) as error:  # no network, no such server, no answer
        return f"no answer ({getattr(error, 'reason', error)})"
    with response:
        start, total = _extent(response)
        if total not in (None, file.size):
            raise UserError(
                f"{url} is not the file it should be, of {total:,} bytes and not {file.size:,}: {_ELSEWHERE}"
            )
        if start not in (0, there):
            part.unlink()
            return "the server sent another part of the file than was asked for"
        with _disk(part, "written"), open(part, "ab" if start else "wb") as out:
            for chunk in _chunks(response):
                out.write(chunk)
                start += len(chunk)
                report(start)
                if start >= file.size:  # a server that does not say how much there is might never end
                    break
            out.flush()
            os.fsync(out.fileno())
    return "the connection was cut"


def _refused(refusal: urllib.error.HTTPError, url: str, part: Path) -> str:
    """What to tell of an HTTP error that may pass. Errors: UserError for one that will not."""
    code = refusal.code
    refusal.close()
    if code in _BUSY:
        return f"the server is busy (HTTP {code})"
    if code == 416:  # nothing there where the part ends: the server's file is shorter
        part.unlink()
        raise UserError(f"{url} is not the file it should be, it is shorter: {_ELSEWHERE}")
    if code in (404, 410):
        raise UserError(f"there is no {url} (HTTP {code}): {_ELSEWHERE}")
    words = http.client.responses.get(code, "")
    raise UserError(f"{url} is refused (HTTP {code} {words}): {_ELSEWHERE}")


def _extent(response: http.client.HTTPResponse) -> tuple[int, int | None]:
    """At which byte of the file an answer starts (-1: it says none), and the whole file's size, if told."""
    if response.status == 206:
        span = re.match(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if not span:
            return -1, None
        return int(span[1]), None if span[2] == "*" else int(span[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """What a server sends, to its end or to where the connection is cut: only the size tells which."""
    try:
        while chunk := response.read(_CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException):
        return


@contextmanager
def _disk(path: Path, verb: str) -> Iterator[None]:
    """What the disk refuses, as a UserError: a full one, or missing permissions."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"the disk is full, {path} cannot be written: make room and run the same command again"
            ) from None
        raise UserError(f"{path} cannot be {verb} ({error.strerror}): check folder and permissions") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
