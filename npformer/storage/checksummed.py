"""Checksummed files: tensors and settings in one safetensors file, with a checksum of every byte.

The settings are one JSON text in the metadata. Their first entry is the checksum of the file with zeros in
the place of the checksum. Any safetensors reader can read the tensors.
"""

import hashlib
import json
import os
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from npformer.errors import UserError
from npformer.storage.atomic import is_device, reason
from npformer.storage.json_files import parse_json, require_object

# the beginning of the metadata in the file, where quotation marks are escaped
_LABEL = rb"{\"sha256\": \""
_NO_DIGEST = b"0" * 64

LARGEST_UNSEEN = 64 << 20  # bytes of the largest file that is read before its header is seen
MOST_LETTERS = 120  # of an error of the library in a message


def checksummed_bytes(
    tensors: dict[str, np.ndarray], settings: dict[str, Any], *, key: str = "npformer"
) -> bytes:
    """Return the bytes of the file. The same content gives the same bytes.

    Args:
        tensors: The arrays by name.
        settings: Plain values by name.
        key: The entry of the metadata with the settings.
    """
    settings = {"sha256": _NO_DIGEST.decode(), **settings}  # the first entry, where _LABEL finds it
    # a single entry, because the library writes several in an order that changes from call to call
    data = safetensors.save(tensors, metadata={key: json.dumps(settings)})
    start = data.index(_LABEL) + len(_LABEL)
    return _with_digest(data, start, hashlib.sha256(data).hexdigest().encode())


def read_checksummed(
    path: str | PathLike[str],
    *,
    key: str = "npformer",
    what: str = "checkpoint",
    remedy: str = "use another checkpoint",
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the tensors and the settings of a file that holds the bytes of checksummed_bytes.

    Args:
        path: The file.
        key: The entry of the metadata with the settings.
        what: The noun for the file, for messages.
        remedy: The advice, for messages.

    Returns:
        The arrays by name, and the settings by name.

    Raises:
        UserError: If the file is missing, cut short, altered in any byte, or of another kind.
    """
    data = _read(Path(path), what)
    try:
        tensors = safetensors.load(data)
    except SafetensorError as error:
        # the library lists all types that it knows
        why = shorten(str(error), MOST_LETTERS, placeholder=" ...")
        raise UserError(
            f"{path} is not a complete safetensors file ({why}): it was cut short or altered, or is of "
            f"another kind; {remedy}"
        ) from None
    except (KeyError, ValueError) as error:  # a dtype that NumPy does not have
        raise UserError(f"{path} has arrays of a type that NumPy cannot read ({error}): {remedy}") from None
    return tensors, _settings(data, path, key, what, remedy)


def _settings(data: bytes, path: str | PathLike[str], key: str, what: str, remedy: str) -> dict[str, Any]:
    """Return the settings in a safetensors file, and raise UserError if it is not ours or was altered."""
    length = int.from_bytes(data[:8], "little")
    header = parse_json(data[8 : 8 + length], f"the header of {path}", remedy)
    text = (header.get("__metadata__") or {}).get(key)
    if text is None or _LABEL not in data:
        raise UserError(
            f"{path} is a safetensors file, but not a {what} of npformer, or it was altered: use another"
        )
    start = data.index(_LABEL) + len(_LABEL)
    found = data[start : start + len(_NO_DIGEST)]
    if found != hashlib.sha256(_with_digest(data, start, _NO_DIGEST)).hexdigest().encode():
        raise UserError(f"{path} was altered after it was written (its checksum differs): {remedy}")
    place = f"the text of settings in the {what} {path}"
    # a setting such as mask_fill may be -Infinity
    return require_object(parse_json(text, place, remedy, infinite=True), place, remedy)


def _with_digest(data: bytes, start: int, digest: bytes) -> bytes:
    return data[:start] + digest + data[start + len(digest) :]


def _read(path: Path, what: str) -> bytes:
    try:
        if is_device(path):  # a pipe would wait for ever, and a device may have no end
            raise UserError(f"{path} is not a file: give the file of a {what}")
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > LARGEST_UNSEEN:
                if _LABEL not in file.read(LARGEST_UNSEEN):  # the header comes first
                    raise UserError(f"{path} is not a {what} of npformer: use another")
                file.seek(0)
            return file.read()
    except FileNotFoundError:
        raise UserError(f"there is no {what} {path}: check the name and the folder") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give the {what} in it") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({reason(error)}): check its permissions") from None
