"""Reading text files as lines and as sentence pairs."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path

from npformer.errors import UserError, quantity
from npformer.storage.bounded import too_large
from npformer.validation import require_count

# of a file, unzipped: a text takes up to four times its bytes in memory, and a line 70 bytes more
MOST_BYTES = 256 << 20
MOST_LINES = 5_000_000
PIECE = 1 << 20  # bytes that are read at a time

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = "\ufeff"
_SMALLER = "give a smaller file, or a part of it"


@dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations, read from two files line by line."""

    pairs: list[tuple[str, str]]
    dropped: int  # lines left out, because a side was empty


def read_lines(path: str | PathLike[str], *, limit: int | None = None) -> list[str]:
    """Return the lines of a UTF-8 text file, plain or gzip, without their line ends.

    A line ends at \\n or \\r\\n only: str.splitlines would also split at characters such as U+2028, and the
    lines of two parallel files would no longer match. A byte-order mark at the start is removed.

    Args:
        path: The file.
        limit: The largest number of lines to read.

    Raises:
        UserError: If the file is missing, unreadable, empty, a broken gzip, not UTF-8 or too large.
    """
    return list(islice(_lines(Path(path)), limit))


def read_text(path: str | PathLike[str], *, any_bytes: bool = False) -> str:
    r"""Return the text of a UTF-8 file, plain or gzip, with \n for the line ends \r\n.

    A byte-order mark at the start is removed.

    Args:
        path: The file.
        any_bytes: Return all bytes of any file: those that are not UTF-8 as the error handler
            "surrogateescape" decodes them, and line ends and a byte-order mark as they are.

    Raises:
        UserError: If the file is missing, unreadable, empty, a broken gzip, not UTF-8 or too large.
    """
    path = Path(path)
    if any_bytes:
        text = b"".join(_pieces(path)).decode("utf-8", "surrogateescape")
    else:
        blocks = _text_blocks(path, "save it as UTF-8, or choose bytes as tokens")
        text = "".join(block.replace("\r\n", "\n") for block in blocks)
    if not text:
        raise UserError(f"{path} is empty: give a file with text")
    return text


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text, and read no more of it than they need."""
    number = 0
    for block in _text_blocks(path, "save it as UTF-8"):
        for line in block.removesuffix("\n").split("\n"):
            number += 1
            if number > MOST_LINES:
                raise UserError(f"{path} has more than {MOST_LINES:,} lines: {_SMALLER}")
            yield line.removesuffix("\r")
    if not number:
        raise UserError(f"{path} is empty: give a file with one sentence a line")


def _text_blocks(path: Path, advice: str) -> Iterator[str]:
    """Yield a text in UTF-8 without its byte-order mark in blocks of whole lines, none of them empty."""
    mark, line = _BYTE_ORDER_MARK, 1
    for data in _blocks(path):
        try:
            text = data.decode("utf-8").removeprefix(mark)
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, error.start)
            byte = data[error.start]
            raise UserError(
                f"{path} is not UTF-8 text at line {line} (byte 0x{byte:02x}): {advice}"
            ) from None
        mark, line = "", line + data.count(b"\n")
        if text:
            yield text


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks that end where a line ends."""
    beginning: list[bytes] = []  # of a line whose end was not read yet
    for piece in _pieces(path):
        lines, end, rest = piece.rpartition(b"\n")
        if end:
            yield b"".join([*beginning, lines, end])
            beginning = []
        beginning.append(rest)
    yield b"".join(beginning)


def read_parallel(
    source_path: str | PathLike[str], target_path: str | PathLike[str], *, limit: int | None = None
) -> ParallelText:
    """Return the sentence pairs of two files whose lines are translations of each other.

    Pairs with an empty side are left out and counted.

    Args:
        source_path: The file of sentences.
        target_path: The file of their translations.
        limit: The largest number of pairs. No more of the files is read than they need.

    Raises:
        UserError: If a file cannot be read or is too large, the numbers of lines differ, or no pair is left.
    """
    if limit is not None:
        require_count("limit", limit)
    pairs: list[tuple[str, str]] = []
    dropped = 0
    counts = [0, 0]
    for source, target in zip_longest(_lines(Path(source_path)), _lines(Path(target_path))):
        counts = [count + (line is not None) for count, line in zip(counts, (source, target), strict=True)]
        if source is None or target is None:  # only to count the lines of the longer file
            continue
        if not source.strip() or not target.strip():
            dropped += 1
            continue
        pairs.append((source.strip(), target.strip()))
        if len(pairs) == limit:
            break
    if counts[0] != counts[1]:
        raise UserError(
            f"{source_path} has {quantity(counts[0], 'line')} but {target_path} has {counts[1]:,}: "
            "line n of one must translate line n of the other"
        )
    if not pairs:
        raise UserError(
            f"no sentence pair in {source_path} and {target_path} is usable: in every pair a side is "
            "empty; give files with sentences on both sides"
        )
    return ParallelText(pairs, dropped)


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces, unzipped if it is a gzip by name or by content.

    Raises:
        UserError: If it cannot be read, is a broken gzip, or has more than MOST_BYTES.
    """
    size = 0
    try:
        with open(path, "rb") as file:
            is_zipped = path.suffix.lower() == ".gz" or file.peek(2).startswith(_GZIP_MAGIC)
            stream = gzip.GzipFile(fileobj=file) if is_zipped else file
            while piece := stream.read(PIECE):
                size += len(piece)
                if size > MOST_BYTES:
                    raise too_large(path, MOST_BYTES, _SMALLER)
                yield piece
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"there is no file {path}: check the name and the folder") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give a text file in it") from None
    except EOFError:
        raise UserError(f"{path} is incomplete: its gzip data has no end; download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is not a valid gzip file ({error}): download it again") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise UserError(f"{str(path)!r} cannot be read ({error}): check its name and permissions") from None
