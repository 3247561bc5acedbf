"""Damaged files, by accidents that change bytes, and forged files, whose form is right but not their content.

Every function is a generator of pairs (name, content) and gives the same pairs for the same arguments.
"""

import copy
import hashlib
import json

import numpy as np
from safetensors import numpy as safetensors

PAGE = 512

# texts that json.dumps cannot write, by the string that stands for them
TEXTS = {
    "@nan": "NaN",
    "@infinite": "1e999",
    "@long": "9" * 5000,
    "@deep": "[" * 3000 + "]" * 3000,
    "@surrogate": '"\\ud800"',
}
# values of every type; for each value of a file, those of other types replace it
OTHERS = {"text": "x", "float": 1.5, "int": 10**30, "bool": True, "null": None, "list": [], "object": {}}
SAME = {
    str: {"text"},
    int: {"int"},
    float: {"float", "int"},
    bool: {"bool"},
    type(None): {"null", "int", "float"},
    list: {"list"},
    dict: {"object"},
}


def damaged(data, rng, each=20):
    """Yield copies of some bytes with `each` accidents of every kind."""
    for _ in range(each):
        yield "truncated", data[: rng.integers(len(data))]
        place, bit = rng.integers(len(data)), rng.integers(8)
        yield "bit flip", data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
        place = rng.integers(len(data) - 1)
        yield "byte swap", data[:place] + data[place : place + 2][::-1] + data[place + 2 :]
        page = min(PAGE, len(data) // 4)
        start = rng.integers(len(data) - page + 1)
        yield "zeroed page", data[:start] + bytes(page) + data[start + page :]
        yield "doubled page", data[: start + page] + data[start:]
        yield "appended bytes", data + rng.bytes(rng.integers(1, 40))
    yield "empty", b""
    yield "all zeros", bytes(len(data))


def forged_values(content, path=(), *, optional=()):
    """Yield copies of a JSON value in which one entry is missing, unknown or of another type.

    Args:
        content: The value.
        path: Where it is, for the names.
        optional: Names of entries that may be missing.
    """
    if isinstance(content, dict):
        yield f"unknown entry in {path}", content | {"colour": 1}
    for key in _keys(content):
        where = (*path, key)
        for kind, other in [*OTHERS.items(), *((name, name) for name in TEXTS)]:
            if kind not in SAME[type(content[key])]:
                yield f"{kind} at {where}", _with(content, key, other)
        if isinstance(content, dict) and key not in optional:
            yield f"no {where}", {name: value for name, value in content.items() if name != key}
        if isinstance(content[key], (dict, list)):
            for name, below in forged_values(content[key], where, optional=optional):
                yield name, _with(content, key, below)


def forged_versions(content, key="format"):
    """Yield copies of an object with another version of its format."""
    for version in (2, 10**6, 0, -1, "x", 1.5, None, True, [1], "@deep", "@nan"):
        yield f"version {version}", content | {key: version}


def to_json(content):
    """Return a forged value as JSON text."""
    text = json.dumps(content)
    for name, instead in TEXTS.items():
        text = text.replace(json.dumps(name), instead)
    return text


def forged_arrays(tensors):
    """Yield copies of named arrays in which one is missing, unknown, or of another shape or type."""
    yield "unknown array", tensors | {"colour.weight": np.ones(3, np.float32)}
    yield "no arrays", {}
    for name, array in tensors.items():
        yield f"no {name}", {other: value for other, value in tensors.items() if other != name}
        changes = {
            "flat": array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1),
            "longer": np.concatenate([array, array[:1]]),
            "empty": array[:0],
            "int8": array.astype(np.int8),
            "bool": array > 0,
            "complex": array.astype(np.complex64),
            "float64": array.astype(np.float64),
            "nan": np.where(np.arange(array.size).reshape(array.shape) == 1, np.nan, array).astype(
                array.dtype
            ),
            "infinite": np.full_like(array, np.inf),
        }
        for kind, changed in changes.items():
            yield f"{kind} {name}", tensors | {name: np.ascontiguousarray(changed)}


def with_checksum(tensors, settings, key):
    """Return the bytes of a checksummed file with forged settings, and a checksum that is right."""
    label = rb"{\"sha256\": \""
    text = to_json({"sha256": "0" * 64} | settings)
    data = safetensors.save(tensors, metadata={key: text})
    start = data.index(label) + len(label)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[start + 64 :]


def _keys(content):
    """Return the keys of an object, or the first and the last index of a list."""
    if isinstance(content, dict):
        return list(content)
    return sorted({0, len(content) - 1}) if content else []


def _with(content, key, value):
    changed = copy.copy(content)
    changed[key] = value
    return changed
