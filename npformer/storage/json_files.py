"""Reading JSON that another program, another version or a person may have written.

Each function checks one thing and raises a UserError of one sentence: which file, what is wrong, what to do.
Every kind of file of the package is read through this module: run logs, model cards, progress files, codecs,
and the settings in checkpoints and exported translators.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from npformer.errors import UserError, nearest
from npformer.storage.bounded import read_up_to
from npformer.validation import has_type, short, type_name

MOST_BYTES = 1 << 26  # 64 MB; the longest JSON text of a real run is that of a codec, of a few MB
MOST_VALUES = 10_000_000  # the tokenizer of a large model has a million
DEEPEST = 50  # levels of lists and objects; the files of the package have at most 4
LONGEST_NUMBER = 300  # digits; a longer one is beyond the range of a float


def read_json(path: Path, what: str, advice: str) -> Any:
    """Read and check a JSON file, as parse_json does.

    Args:
        path: The file.
        what: The noun for the file with its name, such as "the model card card.json".
        advice: The end of the error message, such as "correct it".

    Raises:
        UserError: If the file is missing, cannot be read, or is not JSON that the package accepts.
    """
    return parse_json(read_up_to(path, MOST_BYTES, advice), what, advice)


def parse_json(text: bytes | str, what: str, advice: str, *, infinite: bool = False) -> Any:
    """Return the value of a JSON text, whose size, depth and numbers are limited.

    Args:
        text: The text.
        what: The noun for the text with its place, such as "line 3 of run/log.jsonl".
        advice: The end of the error message.
        infinite: Accept Infinity and -Infinity, which are not JSON but Python writes them.

    Raises:
        UserError: If the text is too long, not UTF-8, not JSON or nested too deeply, or has a number that is
            not finite, an object with two entries of one name, or a string that is not Unicode.
    """

    def fail(problem: str) -> NoReturn:
        raise UserError(f"{what} {problem}: {advice}")

    def constant(name: str) -> float:
        if name == "NaN" or not infinite:
            fail(f"has the number {name}")
        return float(name)

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            fail(f"has a number that is too large ({short(digits)})")
        return value

    def integer(digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            fail(f"has a number that is too large ({short(digits)})")
        return int(digits)

    if len(text) > MOST_BYTES:
        fail(f"has more than {MOST_BYTES >> 20} MB")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        if most_values(decoded) > MOST_VALUES:  # each takes far more memory than its text
            fail(f"has more than {MOST_VALUES:,} values")
        pairs = partial(_object, fail)
        value = json.loads(
            decoded,
            parse_constant=constant,
            parse_float=number,
            parse_int=integer,
            object_pairs_hook=pairs,
        )
    except UnicodeDecodeError as error:
        fail(f"is not UTF-8 text (byte {error.start})")
    except json.JSONDecodeError as error:
        fail(f"is not JSON ({error})")
    except RecursionError:
        fail(f"is nested deeper than {DEEPEST} levels")
    _check_tree(value, fail)
    return value


def most_values(text: str | bytes) -> int:
    """Return a number of values that a JSON text cannot exceed, without reading it."""
    marks: Iterable[Any] = ",[{" if isinstance(text, str) else b",[{"
    return 1 + sum(map(text.count, marks))


def require_object(content: Any, what: str, advice: str) -> dict[str, Any]:
    """Return the content if it is a JSON object.

    Args:
        content: A value that parse_json returned.
        what: The noun for it, with its place.
        advice: The end of the error message.

    Raises:
        UserError: If it is another value.
    """
    if not isinstance(content, dict):
        raise UserError(f"{what} is {type_name(type(content))} and not a JSON object: {advice}")
    return content


def require_version(content: Mapping[str, Any], what: str, newest: int, *, key: str = "format") -> int:
    """Return the version of the format of a file. A file without a number has version 1.

    Args:
        content: The object with the number.
        what: The noun for the file, with its place.
        newest: The newest version that this npformer reads.
        key: The name of the entry.

    Raises:
        UserError: If the number is not a version, or a newer npformer wrote the file.
    """
    version = content.get(key, 1)
    if not has_type(version, int) or version < 1:
        raise UserError(f"{what} has {key} {short(version)}, which is not a version: use an undamaged file")
    if version > newest:
        raise UserError(
            f"{what} has {key} {short(version)}, and this npformer reads up to {newest}: "
            "install a newer npformer"
        )
    return int(version)


def require_entries(
    content: Mapping[str, Any],
    types: Mapping[str, Any],
    what: str,
    advice: str,
    *,
    optional: Mapping[str, Any] | None = None,
) -> None:
    """Check that an object has the required entries, of the right types, and no unknown ones.

    Args:
        content: The object.
        types: The type of each required entry, such as int, float | None or list[str].
        what: The noun for the object, with its place.
        advice: The end of the error message.
        optional: The type of each entry that may be missing.

    Raises:
        UserError: If an entry is missing, unknown or of another type. The message names the first one.
    """
    known = {**types, **(optional or {})}
    for name in types:
        if name not in content:
            raise UserError(f"{what} has no entry {name!r}: {advice}")
    for name, value in content.items():
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else "perhaps a newer npformer wrote it"
            raise UserError(f"{what} has an unknown entry {short(name)} ({hint}): {advice}")
        if not has_type(value, known[name]):
            raise UserError(
                f"the entry {name!r} of {what} is {short(value)}, not {type_name(known[name])}: {advice}"
            )


def _object(fail: Any, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these entries. Call fail(problem) for two of one name: which one counts?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        fail(f"has the entry {short(Counter(name for name, _ in pairs).most_common(1)[0][0])} twice")
    return found


def _check_tree(value: Any, fail: Any) -> None:
    """Call fail(problem) if a value is nested too deeply or has a string that no file can hold."""
    level, depth = [value], 0
    while level:  # level by level, because a recursive function would fail on deep values itself
        depth += 1
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                try:  # the name of a file that is not UTF-8 has a lone surrogate for each such byte
                    each.encode(errors="surrogateescape")
                except UnicodeEncodeError:
                    fail(f"has a string that is not Unicode ({short(each)})")
            elif isinstance(each, dict):
                below += [*each, *each.values()]
            elif isinstance(each, list):
                below += each
        if depth > DEEPEST + 1:
            fail(f"is nested deeper than {DEEPEST} levels")
        level = below
