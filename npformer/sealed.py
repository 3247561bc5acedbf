"""Sealed files: tensors and settings in one safetensors file, with a checksum over every byte.

The settings are one JSON text among the metadata; their first entry is the checksum of the file with zeros in
its place. Any safetensors reader reads the tensors.
"""

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from npformer.errors import UserError

# how the metadata begin in the file, where their quotation marks are escaped
_LABEL = rb"{\"sha256\": \""
_NO_DIGEST = b"0" * 64


def sealed_bytes(tensors: dict[str, np.ndarray], settings: dict[str, Any], *, key: str = "npformer") -> bytes:
    """The file's bytes, with the digest of all others among them. The same content gives the same bytes."""
    settings = {"sha256": _NO_DIGEST.decode(), **settings}  # comes first, where _LABEL finds it
    # one entry: the library writes several in an order that changes from call to call
    data = safetensors.save(tensors, metadata={key: json.dumps(settings)})
    start = data.index(_LABEL) + len(_LABEL)
    return _with_digest(data, start, hashlib.sha256(data).hexdigest().encode())


def read_sealed(
    path: str | PathLike[str],
    *,
    key: str = "npformer",
    what: str = "checkpoint",
    remedy: str = "use another checkpoint",
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The tensors and the settings of a file that sealed_bytes made.

    what and remedy are for the messages: what the file should be, and what to do where it is not.
    Errors: UserError for a file that is missing, cut short, altered in any byte, or of another kind.
    """
    data = _read(Path(path), what)
    try:
        tensors = safetensors.load(data)
    except SafetensorError as error:
        raise UserError(
            f"{path} is not a whole safetensors file ({error}): it was cut short or altered, or is of "
            f"another kind; {remedy}"
        ) from None
    return tensors, _settings(data, path, key, what, remedy)


def _settings(data: bytes, path: str | PathLike[str], key: str, what: str, remedy: str) -> dict[str, Any]:
    """The settings in a sound safetensors file; UserError if it is not ours, or not what was written."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    text = header.get("__metadata__", {}).get(key)
    if text is None or _LABEL not in data:
        raise UserError(
            f"{path} is a safetensors file, but no {what} of npformer, or an altered one: use another"
        )
    start = data.index(_LABEL) + len(_LABEL)
    found = data[start : start + len(_NO_DIGEST)]
    if found != hashlib.sha256(_with_digest(data, start, _NO_DIGEST)).hexdigest().encode():
        raise UserError(f"{path} was altered after it was written (its checksum differs): {remedy}")
    return json.loads(text)


def _with_digest(data: bytes, start: int, digest: bytes) -> bytes:
    return data[:start] + digest + data[start + len(digest) :]


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no {what} {path}: check the name and the folder") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give the {what} in it") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its permissions") from None
