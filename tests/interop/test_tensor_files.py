"""Safetensors files: dtypes, blocks, shards, and the sentence for each damaged or forged file."""

import json
import os

import numpy as np
import pytest
from hugging_face_folders import forge
from refused import refused
from safetensors.numpy import save_file

from npformer.interop import tensor_files
from npformer.interop.tensor_files import read_header, read_index, stored_tensors

NUMBERS = np.array([[1.5, -2.0, 3.25], [0.0, 1e-3, 1024.0]])


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    """Return an entry of a header."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def one_file(folder, **tensors):
    """Write model.safetensors and return its tensors."""
    save_file(tensors, folder / "model.safetensors")
    return stored_tensors(folder)


@pytest.mark.parametrize("stored", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_are_converted(tmp_path, stored, dtype):
    numbers = NUMBERS.astype(stored)
    tensors = one_file(tmp_path, a=numbers, b=-numbers)
    assert list(tensors) == ["a", "b"]
    assert (tensors["b"].shape, tensors["b"].size) == ((2, 3), numbers.nbytes)
    found = tensors["b"].read(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, -numbers.astype(dtype))


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    numbers = np.array([1.5, -2.0, 0.0078125, 3.3895314e38, -1e-39], np.float32)
    bits = (numbers.view(np.uint32) >> 16).astype("<u2")
    forge(tmp_path / "model.safetensors", {"a": entry("BF16", (5,), (0, 10))}, bits.tobytes())
    tensors = stored_tensors(tmp_path)
    assert tensors["a"].dtype == "BF16"
    expected = (bits.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(tensors["a"].read(), expected)
    np.testing.assert_array_equal(expected[:3], numbers[:3])  # which have few digits


@pytest.mark.parametrize("block", [1, 4, 6, 1000])
def test_tensors_are_read_in_blocks_into_views(tmp_path, monkeypatch, block):
    monkeypatch.setattr(tensor_files, "BLOCK", block)
    numbers = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    tensors = one_file(tmp_path, a=np.ones(7, np.float32), b=numbers, c=np.array(4, np.float32))
    buffer = np.zeros((3, 9))
    tensors["b"].read_into(buffer[:, 2:7].T)
    np.testing.assert_array_equal(buffer[:, 2:7], numbers.T)
    assert not buffer[:, :2].any()
    assert not buffer[:, 7:].any()
    assert tensors["c"].read() == 4


def shards(folder, **changes):
    """Write two shards and their index, with changes of its entries, and return the folder."""
    save_file({"a": np.ones(2, np.float32)}, folder / "one.safetensors")
    save_file({"b": np.zeros(3, np.float32), "c": np.ones(1, np.float32)}, folder / "two.safetensors")
    files = {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"} | changes
    files = {name: file for name, file in files.items() if file != "left out"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    return folder


def test_shards_are_one_folder(tmp_path):
    tensors = stored_tensors(shards(tmp_path))
    assert list(tensors) == ["a", "b", "c"]
    assert tensors["b"].path.name == "two.safetensors"
    np.testing.assert_array_equal(tensors["c"].read(), [1])


MISFITS = {
    "'d' is not in .*one.safetensors, where .*index.json says it is: copy": {"d": "one.safetensors"},
    "'c' is in .*two.safetensors, and .* says to be in one.safetensors: copy": {"c": "one.safetensors"},
    "'c' is in .*two.safetensors, and .*index.json says nowhere: copy": {"c": "left out"},
    "lacks three.safetensors, a part of the model that .* names: download": {"d": "three.safetensors"},
    "'d' is in '../three.safetensors', which is not the name of a": {"d": "../three.safetensors"},
    "'d' is in '/etc/passwd', which is not the name of a safetensors file in its": {"d": "/etc/passwd"},
    "'d' is in 3, which is not the name of a safetensors file": {"d": 3},
}


@pytest.mark.parametrize(("sentence", "changes"), MISFITS.items())
def test_an_index_that_does_not_fit(tmp_path, sentence, changes):
    with refused(sentence):
        stored_tensors(shards(tmp_path, **changes))


def test_a_folder_without_safetensors_files(tmp_path):
    with refused(r"there is no folder .*nowhere: check the name"):
        stored_tensors(tmp_path / "nowhere")
    with refused(r"has neither model.safetensors nor model.safetensors.index.json: give"):
        stored_tensors(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02.")
    with refused(r"in pytorch_model.bin, a pickle, and reading a pickle runs code"):
        stored_tensors(tmp_path)


TWO_AT_ONCE = {"a": entry(), "b": entry(offsets=(4, 12))}
FORGED = [
    (entry(), 7),  # bytes of data, of which the header describes 8
    (entry(), 9),
    (entry(offsets=(0, 7)), 7),
    (entry(offsets=(8, 0)), 8),
    (entry(offsets=(-8, 0)), 8),
    (entry(shape=(-2, -1)), 8),
    (entry(offsets=(4, 12)), 12),  # a gap before it
    (TWO_AT_ONCE, 12),
    ({"a": entry(), "b": entry()}, 8),
    (entry("F31"), 8),
    (entry(shape=[10**18] * 9), 8),
    (entry(shape=[10**200] * 60, offsets=(0, 10**250)), 8),
    (entry(shape=[2.0]), 8),
    (entry(shape=[True, 2]), 8),
    (entry(offsets=(0,)), 8),
    (entry(dtype=3), 8),
    ({"a": [1]}, 8),
    ([entry()], 8),
    (b"{", 0),
    (b"\xff{}", 0),
    (b"[" * 100_000, 0),
    (b'{"a": ' * 100 + b"1" + b"}" * 100, 0),
]


@pytest.mark.parametrize(("header", "n_bytes"), FORGED)
def test_a_forged_header(tmp_path, header, n_bytes):
    header = {"a": header} if isinstance(header, dict) and "dtype" in header else header
    with refused(r"x.safetensors is not a complete safetensors file \(.+\): copy or download"):
        read_header(forge(tmp_path / "x.safetensors", header, bytes(n_bytes)))


@pytest.mark.parametrize("size", [0, 3, 8, 20])
def test_a_file_that_is_too_short(tmp_path, size):
    path = forge(tmp_path / "x.safetensors", {"a": entry()}, bytes(8))
    path.write_bytes(path.read_bytes()[:size])
    with refused(r"x.safetensors is not a complete safetensors file \(.+\): copy or download"):
        read_header(path)


def test_a_header_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(tensor_files, "MOST_HEADER", 20)
    with refused(r"has 61 bytes, and npformer reads at most 20"):
        read_header(forge(tmp_path / "x.safetensors", {"a": entry()}, bytes(8)))


def test_a_pointer_of_git_lfs(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid 0\n")
    with refused(r"model.safetensors is a pointer of Git LFS.*git lfs pull"):
        stored_tensors(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")  # reading it would never end
    with refused(r"model.safetensors is not a file: copy or download"):
        stored_tensors(tmp_path)


def test_metadata_and_other_dtypes_may_be_there(tmp_path):
    header = {"__metadata__": {"format": "pt"}, "mask": entry("BOOL", (2,), (0, 2))}
    header["empty"] = entry("F32", (0, 3), (2, 2))
    tensors = stored_tensors(forge(tmp_path / "model.safetensors", header, bytes(2)).parent)
    assert list(tensors) == ["mask", "empty"]
    assert tensors["empty"].read().shape == (0, 3)
    with refused(r"mask in .* has dtype BOOL, and npformer reads weights of F64, F32"):
        tensors["mask"].read()


def test_numbers_that_are_not_finite_or_too_large(tmp_path):
    tensors = one_file(tmp_path, a=np.array([1.0, np.nan]), b=np.array([1e300]))
    with refused(r"a in .*model.safetensors has numbers that are not finite: use another"):
        tensors["a"].read()
    with refused(r"b in .*model.safetensors has numbers that float32 cannot hold"):
        tensors["b"].read()
    assert tensors["b"].read(np.float64) == 1e300


def test_a_file_that_shrinks_after_its_header_was_read(tmp_path):
    tensors = one_file(tmp_path, a=np.ones(100))
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with refused(r"model.safetensors became shorter while it was read"):
        tensors["a"].read()


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"weight_map": {}}', '{"weight_map": ["a"]}', "[" * 10_000, ""]
)
def test_an_index_of_another_form(tmp_path, content):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(content)
    with refused(r"index.json"):
        read_index(path)
