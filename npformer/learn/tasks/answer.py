"""The format in which a child process answers: lines of JSON, with arrays as base64.

Reading an answer executes nothing, whatever it holds: no pickle, and only arrays of numbers and characters.
An object that the format lacks arrives as a stand-in that knows the name of the object's type.
"""

import base64
import binascii
import json
import math
import re
from typing import Any

import numpy as np

from npformer.backend import is_array, to_numpy
from npformer.storage.json_files import most_values

LARGEST = 32 << 20  # bytes of a line
MOST_VALUES = 1_000_000  # of an answer; each takes far more memory than its text
LONGEST_NAME = 100  # characters of the name of a type
DEEPEST = 20  # levels of lists in lists
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16|U\d{1,6}|S\d{1,6})")


class DamagedAnswer(ValueError):
    """The child process did not answer in the format of this module."""


class TooLarge(ValueError):
    """A result is larger than an answer may be."""


class StandIn:
    """An object of the child process that the format lacks. Its class has the name of the object's type."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def encode(value: Any) -> bytes:
    """Return the value as one line of JSON.

    Raises:
        TooLarge: If the line has more than `LARGEST` bytes or `MOST_VALUES` values.
    """
    line = json.dumps(_plain(value, DEEPEST, [LARGEST])).encode()
    if len(line) > LARGEST:
        raise TooLarge(f"more than {LARGEST >> 20} MB")
    if most_values(line) > MOST_VALUES:
        raise TooLarge(f"more than {MOST_VALUES:,} values")
    return line


def decode(line: bytes) -> Any:
    """Return the value of a line.

    Raises:
        DamagedAnswer: If the line is not one that `encode` writes.
    """
    try:
        if len(line) > LARGEST or most_values(line) > MOST_VALUES:
            raise ValueError("too large")
        return _value(json.loads(line))
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError, binascii.Error) as error:
        raise DamagedAnswer(f"{type(error).__name__} in {line[:40]!r}") from None


def transported(value: Any) -> Any:
    """Return the value as it arrives at the parent process."""
    return decode(encode(value))


def _plain(value: Any, depth: int, room: list[int]) -> Any:
    """Return the value as JSON has it. An object with one key stands for what JSON lacks."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth == 0:
        return {"other": [kind.__name__, "..."]}
    if kind in (list, tuple):
        items = [_plain(item, depth - 1, room) for item in value]
        return items if kind is list else {"tuple": items}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: _plain(item, depth - 1, room) for key, item in value.items()}}
    if is_array(value) or isinstance(value, np.generic):
        return _plain_array(to_numpy(value), "array" if is_array(value) else "scalar", room)
    return {"other": [kind.__name__, _short_repr(value)]}


def _plain_array(array: Any, kind: str, room: list[int]) -> Any:
    if not _DTYPE.fullmatch(array.dtype.str):
        return {"objects": [*array.shape]}
    room[0] -= math.ceil(array.nbytes * 4 / 3)  # base64 writes three bytes as four characters
    if room[0] < 0:
        raise TooLarge(f"more than {LARGEST >> 20} MB")
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {kind: [array.dtype.str, [*array.shape], data]}


def _short_repr(value: Any) -> str:
    try:
        return repr(value)[:60]
    except Exception:  # the learner's class may define it
        return f"<{type(value).__name__}>"


def _value(plain: Any) -> Any:
    """Return the value that `_plain` turned into this."""
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    match plain:
        case {"tuple": list(items)}:
            return tuple(_value(item) for item in items)
        case {"dict": dict(items)}:
            return {key: _value(item) for key, item in items.items()}
        case {"array": [str(dtype), list(shape), str(data)]}:
            return _array(dtype, shape, data)
        case {"scalar": [str(dtype), list(shape), str(data)]}:
            return _array(dtype, shape, data)[()]
        case {"objects": list(shape)}:
            return np.broadcast_to(np.array(None, object), _checked(shape))  # takes no memory
        case {"other": [str(name), str(text)]}:
            return type(name[:LONGEST_NAME], (StandIn,), {})(text)
        case dict():
            raise ValueError("an unknown kind of value")
    return plain


def _array(dtype: str, shape: list[int], data: str) -> Any:
    if not _DTYPE.fullmatch(dtype):
        raise ValueError(f"dtype {dtype!r}")
    flat = np.frombuffer(bytearray(base64.b64decode(data, validate=True)), dtype)
    return flat.reshape(_checked(shape))


def _checked(shape: list[Any]) -> list[int]:
    """Return a shape, or raise ValueError if it is none, or one of more entries than an answer may have."""
    if not all(type(n) is int and 0 <= n <= LARGEST for n in shape) or math.prod(shape) > LARGEST:
        raise ValueError(f"shape {shape}")
    return shape
