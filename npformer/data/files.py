"""Reading text files as lines and as sentence pairs."""

import gzip
import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from npformer.errors import UserError, quantity

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations, read from two files line by line."""

    pairs: list[tuple[str, str]]
    dropped: int  # lines left out, because a side was empty


def read_lines(path: str | PathLike[str]) -> list[str]:
    """Return the lines of a UTF-8 text file, plain or gzip, without their line ends.

    A line ends at \\n or \\r\\n only: str.splitlines would also split at characters such as U+2028, and the
    lines of two parallel files would no longer match. A byte-order mark at the start is removed.

    Raises:
        UserError: If the file is missing, unreadable, empty, a broken gzip or not UTF-8.
    """
    text = _decode(Path(path), "save it as UTF-8")
    if not text:
        raise UserError(f"{path} is empty: give a file with one sentence a line")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def read_text(path: str | PathLike[str], *, any_bytes: bool = False) -> str:
    r"""Return the text of a UTF-8 file, plain or gzip, with \n for the line ends \r\n.

    A byte-order mark at the start is removed.

    Args:
        path: The file.
        any_bytes: Return all bytes of any file: those that are not UTF-8 as the error handler
            "surrogateescape" decodes them, and line ends and a byte-order mark as they are.

    Raises:
        UserError: If the file is missing, unreadable, empty, a broken gzip or not UTF-8.
    """
    path = Path(path)
    if any_bytes:
        text = _read_bytes(path).decode("utf-8", "surrogateescape")
    else:
        text = _decode(path, "save it as UTF-8, or choose bytes as tokens").replace("\r\n", "\n")
    if not text:
        raise UserError(f"{path} is empty: give a file with text")
    return text


def _decode(path: Path, advice: str) -> str:
    """Return the text of a UTF-8 file without a byte-order mark, or raise UserError with the advice."""
    data = _read_bytes(path)
    try:
        return data.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path} is not UTF-8 text at line {line} (byte 0x{data[error.start]:02x}): {advice}"
        ) from None


def read_parallel(
    source_path: str | PathLike[str], target_path: str | PathLike[str], *, limit: int | None = None
) -> ParallelText:
    """Return the sentence pairs of two files whose lines are translations of each other.

    Pairs with an empty side are left out and counted.

    Args:
        source_path: The file of sentences.
        target_path: The file of their translations.
        limit: The largest number of pairs to read.

    Raises:
        UserError: If a file cannot be read, the numbers of lines differ, or no pair is left.
    """
    if limit is not None and limit < 1:
        raise UserError(f"limit is {limit}: it must be 1 or more")
    sources, targets = read_lines(source_path), read_lines(target_path)
    if len(sources) != len(targets):
        raise UserError(
            f"{source_path} has {quantity(len(sources), 'line')} but {target_path} has {len(targets):,}: "
            "line n of one must translate line n of the other"
        )
    pairs: list[tuple[str, str]] = []
    dropped = 0
    for source, target in zip(sources, targets, strict=True):
        if len(pairs) == limit:
            break
        if source.strip() and target.strip():
            pairs.append((source.strip(), target.strip()))
        else:
            dropped += 1
    if not pairs:
        raise UserError(
            f"no sentence pair in {source_path} and {target_path} is usable: in every pair a side is "
            "empty; give files with sentences on both sides"
        )
    return ParallelText(pairs, dropped)


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, unzipped if it is a gzip by name or by content."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}: check the name and the folder") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give a text file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise UserError(f"{str(path)!r} cannot be read ({error}): check its name and permissions") from None
    if path.suffix.lower() != ".gz" and not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except EOFError:
        raise UserError(f"{path} is incomplete: its gzip data has no end; download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is not a valid gzip file ({error}): download it again") from None
