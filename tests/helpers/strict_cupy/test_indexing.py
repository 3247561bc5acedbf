"""Indexing in the stand-in: indices wrap, duplicate writes do not end as in NumPy, views share memory."""

import sys

import numpy as np
import pytest

READ = {  # of [[0, 1, 2], [3, 4, 5]]; far is [0, 3, -1, 302, -301]
    "x[0][far]": [0.0, 0, 2, 2, 2],
    "x[0][[1, 4]]": [1.0, 1],
    "cupy.take(x, far, axis=1)[0]": [0.0, 0, 2, 2, 2],
    "cupy.take_along_axis(x, cupy.asarray([[5], [-4]]), 1)": [[2.0], [5]],
    "x[cupy.asarray([2]), 1]": [1.0],
    "x[None, ..., far.astype(cupy.uint8)[:2]]": [[[0.0, 0], [3, 3]]],
    "x[x > 3.0]": [4.0, 5],
}


@pytest.mark.parametrize("expression", READ)
def test_index_arrays_wrap_and_masks_choose(cupy, x, expression):
    found = eval(expression, {"cupy": cupy, "x": x, "far": cupy.asarray([0, 3, -1, 302, -301])})
    np.testing.assert_array_equal(found.get(), READ[expression], strict=True)
    assert found.flags.c_contiguous


@pytest.mark.parametrize("key", ["2", "(0, 3)", "(0, -4)", "cupy.asarray([0.0])"])
def test_integer_indices_do_not_wrap(cupy, x, key):
    with pytest.raises(IndexError):
        x[eval(key)]


def test_writes_wrap_and_are_as_in_numpy_where_no_entry_occurs_twice(cupy, x):
    x[x > 3.0] = 0.0
    x[cupy.asarray([True, False])] = cupy.asarray([7.0, 8.0, 9.0])
    x[1, cupy.asarray([3])] = 6.0
    assert x.tolist() == [[7, 8, 9], [6, 0, 0]]
    expected, table = np.zeros((3, 4)), cupy.zeros((4, 3)).T
    rows, columns, values = np.array([2, 0]), np.array([[1], [3]]), np.arange(4.0).reshape(2, 2)
    expected[rows, columns] = values
    table[cupy.asarray(rows), cupy.asarray(columns)] = cupy.asarray(values)
    np.testing.assert_array_equal(table.get(), expected)


def test_duplicate_writes_race_entry_by_entry_and_never_end_as_in_numpy(cupy):
    many = set()
    for _ in range(20):
        row, one, table = cupy.zeros(4), cupy.zeros(1), cupy.zeros((2, 50))
        row[cupy.asarray([0, 2, 2, 0])] = cupy.asarray([1.0, 2.0, 3.0, 4.0])
        assert row.tolist() == [1, 0, 2, 0]  # the first of two writes wins, unlike in NumPy
        one[cupy.zeros(9, int)] = cupy.arange(9.0)
        many.add(one.item())
        table[cupy.asarray([1, 1, 1])] = cupy.arange(3.0)[:, None] * cupy.ones(50)
        assert set(table[1].tolist()) == {0.0, 1.0}
        assert not table[0].any()
    assert len(many) > 3
    assert 8.0 not in many


@pytest.mark.parametrize("scatter", ["cupy.add.at", "cupyx.scatter_add"])
def test_scatter_add_counts_every_write(cupy, scatter):
    add = sys.modules["cupyx"].scatter_add if "cupyx" in scatter else cupy.add.at
    index, step = cupy.asarray([[0, 1], [1, 5]]), np.arange(12.0).reshape(2, 2, 3)
    table, lost, expected = cupy.zeros((4, 3)), cupy.zeros((4, 3)), np.zeros((4, 3))
    add(table, index, cupy.asarray(step))
    np.add.at(expected, index.get() % 4, step)
    np.testing.assert_array_equal(table.get(), expected)
    lost[index] += cupy.asarray(step)
    assert (lost.get() != expected).any()
    for dtype in (cupy.int64, cupy.complex128, cupy.int8):  # a GPU cannot add these at once
        with pytest.raises(TypeError, match="only supports"):
            add(cupy.zeros(3, dtype), cupy.asarray([0]), 1)
