"""Reading standard input in blocks of the lines that have arrived, without waiting for its end."""

import os
import select
import stat
from collections import deque
from collections.abc import Iterator
from io import BufferedIOBase

from npformer.errors import UserError

# the number of lines in the first block, and in the largest: each block is twice as long as the one before
FIRST, MOST = 64, 1024
BYTES = 1 << 16  # as many as a pipe holds
LONGEST = 1 << 20  # bytes of a line
WAIT = 0.01  # seconds in which a program that writes quickly continues


def read_blocks(stream: BufferedIOBase) -> Iterator[list[str]]:
    """Yield the lines of a text in UTF-8, without their ends, in blocks of at most MOST lines.

    A block ends early if no further line has arrived. So each line that a program or a person writes into an
    open pipe is yielded at once, and the blocks of a file are full. Only one block is in memory.

    Raises:
        UserError: If there is no line, or, after the lines before it, if a line is not UTF-8 or too long.
    """
    number = 0
    for raw_lines in _raw_blocks(stream):
        lines: list[str] = []
        for raw in raw_lines:
            number += 1
            if len(raw) > LONGEST:
                yield lines
                raise UserError(
                    f"standard input, line {number}, has more than {LONGEST >> 20} MB: "
                    "give one sentence on each line"
                )
            try:
                lines.append(raw.decode("utf-8").removesuffix("\r"))
            except UnicodeDecodeError:
                yield lines
                raise UserError(
                    f"standard input, line {number}, is not valid UTF-8: convert it first"
                ) from None
        yield lines
    if number == 0:
        raise UserError("standard input is empty: give one sentence on each line")


def _raw_blocks(stream: BufferedIOBase) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in blocks."""
    lines: deque[bytes] = deque()
    beginning: list[bytes] = []  # of a line whose end was not read yet
    size, ended, length = FIRST, False, 0
    while not ended or lines:
        while not ended and len(lines) < size and (not lines or _has_arrived(stream)):
            data = stream.read1(BYTES)
            ended = not data
            *complete, rest = data.split(b"\n")
            if complete:
                lines.append(b"".join([*beginning, complete[0]]))
                lines.extend(complete[1:])
                beginning, length = [], 0
            beginning.append(rest)
            length += len(rest)
            ended = ended or length > LONGEST  # a line without end is not read further
            if ended and any(beginning):
                lines.append(b"".join(beginning))  # the last line has no end
        if lines:
            yield [lines.popleft() for _ in range(min(size, len(lines)))]
        size = min(2 * size, MOST)


def _has_arrived(stream: BufferedIOBase) -> bool:
    """Return True if the stream can be read without waiting, and False also if that cannot be known."""
    try:
        return bool(select.select([stream], [], [], WAIT)[0])
    except (OSError, ValueError):  # the stream is not a file of the system, or the system is Windows
        return False


def size_in_bytes(stream: BufferedIOBase) -> int | None:
    """Return the size of a file, or None for a pipe, whose size is not known."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # not a file of the system
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
