"""The format of answers: values arrive as they were sent, and damaged or forged lines do no harm."""

import contextlib
import io
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks.answer import LARGEST, DamagedAnswer, TooLarge, decode, encode, transported
from npformer.learn.tasks.limits import FILE_SIZE
from npformer.learn.tasks.process import _read, judge_answer
from npformer.mistakes.budget import limited_memory

VALUES = {
    "nothing": None,
    "numbers": [0, -3, 10**30, 0.1, -0.0, float("inf"), True, np.float32(0.1)],
    "texts": ["", "π\n\x1b[31m", "\ud800"],
    "lists and tuples": [(), [], (1, [2, (3,)]), ("a", None)],
    "a dict": {"tuple": (1, 2), "array": {"list": [3]}},
}
ARRAYS = {
    "float64": np.array([[0.1, np.nan, np.inf], [-0.0, 1e-310, 3]]),
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "complex": np.array([1j, 2]),
    "integers": np.array([[1, 2]], np.int8),
    "bool": np.array([True, False]),
    "no entries": np.zeros((0, 5)),
    "a number": np.array(3.5),
    "a view": np.arange(10)[::-2],
    "big-endian": np.arange(3, dtype=">f8"),
    "texts": np.array(["a", "bcd"]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_arrive_as_they_were_sent(name):
    assert transported(VALUES[name]) == VALUES[name]
    assert repr(transported(VALUES[name])) == repr(VALUES[name])  # -0.0, True and 1


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_arrive_as_they_were_sent(name):
    found = transported([ARRAYS[name]])[0]
    assert (found.dtype, found.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
    assert found.tobytes() == ARRAYS[name].tobytes()
    assert found.flags.writeable


def test_other_objects_arrive_as_stand_ins():
    class Own:
        def __repr__(self):
            raise KeyError

    class Pair(tuple):
        __slots__ = ()

    found = transported([Own(), Pair((1, 2)), {1: 2}, {3}])
    assert [type(x).__name__ for x in found] == ["Own", "Pair", "dict", "set"]
    assert repr(found[3]) == "{3}"
    assert not isinstance(found[1], tuple)
    objects = transported(np.array([[None, Own()]]))
    assert (objects.dtype, objects.shape) == (object, (1, 2))


def test_lists_without_end_are_cut():
    endless = []
    endless.append(endless)
    assert transported(endless)


@pytest.mark.parametrize(
    "value", [np.broadcast_to(0.0, (10**6, 10**6)), "x" * LARGEST, [np.zeros(LARGEST // 16)] * 3]
)
def test_values_that_are_too_large_are_refused(value):
    with pytest.raises(TooLarge, match="more than 32 MB"):
        encode(value)


DAMAGED = [
    b"", b"{", b"\xff", b"{}", b'{"a": 1}', b'{"tuple": 3}', b'{"dict": [1]}',
    b'{"other": 1}', b'{"other": ["a"]}', b'{"array": []}', b'{"array": ["<f8", [1], "!!!"]}',
    b'{"array": ["<f8", [2], "AAAAAAAAAAA="]}', b'{"array": ["|O", [1], "AAAAAAAAAAA="]}',
    b'{"array": ["<f8", [-1], "AAAAAAA="]}', b'{"array": ["f8,O", [1], ""]}', b'{"array": ["<f8", "x", ""]}',
    b'{"array": ["<M8[s]", [1], "AAAAAAAAAAA="]}', b'{"array": [["<f8"], [1], ""]}',
    b'{"array": ["<U0", [0], ""]}', b'{"objects": [100000000]}',
    b'{"objects": ["a"]}', b'{"objects": null}', b'{"scalar": ["<f8", [], ""]}', b"[" * 100_000,
    b"1" * 10_000, b'{"other": ["\\u0000", ""]}', b'{"objects": [9223372036854775808, ""]}',
    b'{"objects": [0, 9223372036854775808]}', b'{"objects": [true]}', b'{"objects": [-1, -1]}',
    b'{"array": ["<f8", [9223372036854775808, 0], ""]}', b'{"array": ["<f8", [-1, -1], "AAAAAAAAAAA="]}',
    b'{"array": ["<f8", [1.0], "AAAAAAAAAAA="]}', b'{"array": ["<U999999", [9223372036854775808], ""]}',
]  # fmt: skip


@pytest.mark.parametrize("line", DAMAGED, ids=lambda line: repr(line[:40]))
def test_damaged_lines_are_refused(line):
    with pytest.raises(DamagedAnswer):
        decode(line)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["tuple", "dict", "array", "scalar", "objects", "other"]), inner, max_size=2
        )
    ),
    max_leaves=10,
)


@given(PLAIN)
def test_any_json_is_read_or_refused(plain):
    with contextlib.suppress(DamagedAnswer):
        decode(json.dumps(plain).encode())


# ---------------------------------------------------------------------------------------------------------
# Answers that are small and would take much memory


def line_of(value):
    return b'{"dict": {"value": ' + value + b"}}\n"


OBJECTS = b'{"objects": [33554432]}'
GREEDY = {
    "results of objects": line_of(b'{"dict": {"values": {"dict": {"dx": ' + OBJECTS + b"}}}}") * 12,
    "lists of objects": line_of(b"[" + b",".join([OBJECTS] * 1000) + b"]"),
    "empty lists": line_of(b"[" + b"[]," * 10**7 + b"0]"),
    "types": line_of(b"[" + b'{"other":["a",""]},' * 10**6 + b"0]"),
    "a long name": line_of(b'{"other":["' + b"x" * (31 << 20) + b'",""]}') * 2,
    "floats": line_of(b"[" + b"0.1," * (7 << 20) + b"0]") * 2,
    "arrays": line_of(b"[" + b'{"array":["<f8",[0,33554432],""]},' * 150_000 + b"0]"),
    "lines": b'{"dict":{"value":0}}\n' * 2_000_000,
    "empty lines": b"\n" * FILE_SIZE,
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize("name", GREEDY)
def test_an_answer_takes_little_memory(name):
    exercise = EXERCISES.find("softmax-backward")
    with limited_memory(500 << 20):
        answer = _read(io.BytesIO(GREEDY[name]))
        verdict = judge_answer(EXERCISES, exercise, answer, "file.py")
    assert not verdict.solved
    assert "Memory" not in verdict.message


def test_an_array_of_objects_takes_no_memory():
    assert decode(OBJECTS).strides == (0,)


def test_results_with_too_many_values_are_refused_where_they_arise():
    assert len(transported([0] * 900_000)) == 900_000
    with pytest.raises(TooLarge, match="more than 1,000,000 values"):
        encode([0] * 1_100_000)
    with pytest.raises(DamagedAnswer):
        decode(b"[" + b"0," * 1_100_000 + b"0]")
