"""Indexing in the stand-in: indices wrap, duplicate writes do not end as in NumPy, views share memory."""

import sys

import numpy as np
import pytest


def same(device, expected):
    """Check the values, shape and dtype of a device array."""
    np.testing.assert_array_equal(device.get(), expected, strict=True)


def test_index_arrays_wrap(cupy, x):
    far = cupy.asarray([0, 3, -1, 302, -301])
    same(x[0][far], np.array([0.0, 0.0, 2.0, 2.0, 2.0]))
    same(x[0][[1, 4]], np.array([1.0, 1.0]))
    same(cupy.take(x, far, axis=1)[0], np.array([0.0, 0.0, 2.0, 2.0, 2.0]))
    same(cupy.take_along_axis(x, cupy.asarray([[5], [-4]]), 1), np.array([[2.0], [5.0]]))
    same(x[cupy.asarray([2]), 1], np.array([1.0]))
    same(x[None, ..., far.astype(cupy.uint8)[:2]], np.array([[[0.0, 0.0], [3.0, 3.0]]]))
    assert x[:, far].flags.c_contiguous
    x[:, cupy.asarray([3])] = 9.0
    same(x[:, 0], np.array([9.0, 9.0]))


def test_integer_indices_do_not_wrap(cupy, x):
    for key in (2, (0, 3), (0, -4)):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(IndexError):
        x[cupy.asarray([0.0])]


def test_masks(cupy, x):
    same(x[x > 3.0], np.array([4.0, 5.0]))
    x[x > 3.0] = 0.0
    x[cupy.asarray([True, False])] = cupy.asarray([7.0, 8.0, 9.0])
    same(x, np.array([[7.0, 8.0, 9.0], [3.0, 0.0, 0.0]]))


def test_duplicate_writes_never_end_as_in_numpy(cupy):
    index = cupy.asarray([0, 2, 2, 0])
    for _ in range(20):
        row = cupy.zeros(4)
        row[index] = cupy.asarray([1.0, 2.0, 3.0, 4.0])
        same(row, np.array([1.0, 0.0, 2.0, 0.0]))  # the first of two writes wins, unlike in NumPy
    many = set()
    for _ in range(20):
        row = cupy.zeros(1)
        row[cupy.zeros(9, int)] = cupy.arange(9.0)
        many.add(row.item())
    assert len(many) > 3
    assert 8.0 not in many


def test_duplicates_race_entry_by_entry(cupy):
    table = cupy.zeros((2, 50))
    table[cupy.asarray([1, 1, 1])] = cupy.arange(3.0)[:, None] * cupy.ones(50)
    assert set(table[1].tolist()) == {0.0, 1.0}
    assert not table[0].any()


def test_unique_writes_are_as_in_numpy(cupy):
    expected = np.zeros((3, 4))
    table = cupy.zeros((4, 3)).T
    rows, columns, values = np.array([2, 0]), np.array([[1], [3]]), np.arange(4.0).reshape(2, 2)
    expected[rows, columns] = values
    table[cupy.asarray(rows), cupy.asarray(columns)] = cupy.asarray(values)
    same(table, expected)


@pytest.mark.parametrize("scatter", ["cupy.add.at", "cupyx.scatter_add"])
def test_scatter_add_counts_every_write(cupy, scatter):
    add = sys.modules["cupyx"].scatter_add if "cupyx" in scatter else cupy.add.at
    index, step = cupy.asarray([[0, 1], [1, 5]]), np.arange(12.0).reshape(2, 2, 3)
    table, lost = cupy.zeros((4, 3)), cupy.zeros((4, 3))
    add(table, index, cupy.asarray(step))
    expected = np.zeros((4, 3))
    np.add.at(expected, index.get() % 4, step)
    same(table, expected)
    lost[index] += cupy.asarray(step)
    assert (lost.get() != expected).any()


def test_scatter_add_accepts_the_dtypes_of_gpu_atomics(cupy):
    for dtype in (cupy.int64, cupy.complex128, cupy.int8):
        with pytest.raises(TypeError, match="only supports"):
            cupy.add.at(cupy.zeros(3, dtype), cupy.asarray([0]), 1)


def test_views_share_memory(cupy):
    flat = cupy.zeros(12)
    weight = flat[2:8].reshape(2, 3)
    weight += 1.0
    weight.T[0] = 5.0
    weight[1, 2][...] = 7.0  # a 0-d view
    weight.transpose(1, 0)[1] *= 2.0
    same(flat, np.array([0, 0, 5, 2, 1, 5, 2, 7, 0, 0, 0, 0.0]))
    assert cupy.shares_memory(flat, weight)
    assert not cupy.shares_memory(flat, flat[cupy.asarray([0])])
    assert not cupy.shares_memory(flat, flat[cupy.asarray(0)])


def test_real_and_imag_are_views(cupy):
    z = cupy.zeros(2, cupy.complex128)
    real, imag = z.real, z.imag
    real += 1.0
    imag[...] = cupy.asarray([2.0, 3.0])
    same(z, np.array([1 + 2j, 1 + 3j]))
    r = cupy.ones(2)
    assert r.real is r
    assert r.imag.sum().item() == 0
