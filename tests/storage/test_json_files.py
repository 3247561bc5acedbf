"""JSON and headers from outside: duplicated names, too many values, and every type in every field."""

import hashlib
import json
import os

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.interop.tensor_files import read_header
from npformer.storage import checksummed, json_files
from npformer.storage.bounded import read_up_to
from npformer.storage.checksummed import checksummed_bytes, read_checksummed
from npformer.storage.json_files import parse_json

BYTES = checksummed_bytes({"a": np.ones(3, np.float32)}, {"step": 1})
END = 8 + int.from_bytes(BYTES[:8], "little")
TEXT = BYTES[8:END].decode()
HEADER = json.loads(TEXT)
VALUES = [
    *(None, True, 0, -1, 1.5, 1e300, 10**30, 2**63, float("inf")),
    *("", "x", "F32", "\ud800", [], [1], [None], [[1]], {}, {"a": 1}),
]


def headers():
    """Yield headers in which one field has another value, or is missing."""
    array, metadata = HEADER["a"], HEADER["__metadata__"]
    for value in VALUES:
        yield value
        yield from (HEADER | {name: value} for name in ("__metadata__", "a", "other"))
        yield from (HEADER | {"__metadata__": metadata | {name: value}} for name in ("npformer", "other"))
        yield from (HEADER | {"a": array | {name: value}} for name in (*array, "other"))
        yield from (HEADER | {"a": array | {"data_offsets": pair}} for pair in ([value, 12], [0, value]))
        yield HEADER | {"a": array | {"shape": [value]}}
    for name in array:
        yield HEADER | {"a": {other: value for other, value in array.items() if other != name}}
    for dtype in ["F64", "F16", "BF16", "F8_E4M3", "I8", "U64", "BOOL", "F128"]:
        yield HEADER | {"a": array | {"dtype": dtype}}
        yield HEADER | {"a": {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]}}


def texts():
    """Yield texts of headers that no object has."""
    entry = json.dumps(HEADER["a"])
    yield from ("", "{}", "[" * 10_000, TEXT[:-1], TEXT + " " * 8, TEXT + "x", "\ufeff" + TEXT)
    yield TEXT.replace('"a":', f'"a":{entry},"a":')
    yield TEXT.replace('"shape"', '"shape":[3],"shape"')
    yield TEXT.replace('"__metadata__"', '"__metadata__":{},"__metadata__"')


def with_header(text):
    """Return the bytes of a file with this header and the right checksum, to reach later checks."""
    header = text.encode("utf-8", "surrogatepass")
    data = len(header).to_bytes(8, "little") + header + BYTES[END:]
    if checksummed._LABEL not in data:
        return data
    start = data.index(checksummed._LABEL) + len(checksummed._LABEL)
    digest = hashlib.sha256(checksummed._with_digest(data, start, b"0" * 64)).hexdigest()
    return checksummed._with_digest(data, start, digest.encode())


def test_every_type_of_every_field_of_a_header_is_read_or_refused_in_one_sentence(tmp_path):
    path, outcomes = tmp_path / "x.safetensors", []
    for text in [*map(json.dumps, headers()), *texts()]:
        path.write_bytes(with_header(text))
        for read in (read_checksummed, read_header):
            try:
                read(path)
                outcomes.append("")
            except UserError as error:
                outcomes.append(str(error))
    assert not any("\n" in outcome for outcome in outcomes)
    assert sum(map(bool, outcomes)) > 0.75 * len(outcomes)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="devices and pipes of Unix")
@pytest.mark.parametrize("kind", ["device", "pipe", "large"])
def test_what_is_no_checkpoint_is_not_read(tmp_path, kind):
    path = tmp_path / "x.safetensors"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with open(path, "wb") as file:
            file.truncate(1 << 40)  # a terabyte, of which the disk holds nothing
    with pytest.raises(UserError, match=r"is not a file: give|is not a checkpoint of npformer: use another"):
        read_checksummed(path)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "c": 2, "a": 3}}]', '{"": 1, "": 2}'])
def test_an_object_with_two_entries_of_one_name_is_refused(text):
    with pytest.raises(UserError, match=r"^the file has the entry '.?' twice: mend it$"):
        parse_json(text, "the file", "mend it")


@pytest.mark.parametrize(
    "text", ["[" + "[]," * 20 + "0]", "[" + "1," * 30 + "1]", '{"a":' * 25 + "0" + "}" * 25]
)
def test_a_text_with_too_many_values_is_refused_before_it_is_read(monkeypatch, text):
    monkeypatch.setattr(json_files, "MOST_VALUES", 24)
    monkeypatch.setattr(json_files.json, "loads", None)
    with pytest.raises(UserError, match="has more than 24 values"):
        parse_json(text, "the file", "mend it")


def test_a_file_is_read_up_to_a_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (1 << 20))
    assert len(read_up_to(path, 1 << 20, "")) == 1 << 20
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(UserError, match="file has more than 1 MB: give another"):
        read_up_to(path, 1 << 20, "give another")
    with pytest.raises(UserError, match="the log cannot be read"):
        read_up_to(tmp_path / "missing", 1, "", what="the log")
