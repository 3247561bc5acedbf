"""Creation of device arrays, from shapes and from host data by explicit transfer."""

import numpy as np

from ._fuse import fuse
from ._values import DeviceValue, check_dtype, device_array, host_argument, operand, upload, wrap


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0):
    """Return a copy on the device of a device array, a NumPy array, a number or nested lists of numbers."""
    if subok:
        raise TypeError("there are no subclasses in the stand-in")
    if isinstance(obj, DeviceValue):
        check_dtype(dtype or obj.dtype)
        return wrap(np.array(obj._array, dtype=dtype, copy=copy or None, order=order, ndmin=ndmin))
    array = upload(obj, dtype)
    return wrap(np.array(array._array, copy=None, order=order, ndmin=ndmin))


def asarray(a, dtype=None, order=None):
    """Return the same device array if it has that dtype, otherwise the result of `array`."""
    if isinstance(a, DeviceValue) and order is None and dtype in (None, a.dtype):
        return a
    return array(a, dtype, copy=False, order=order or "K")


def asnumpy(a, stream=None, order="C"):
    """Return a NumPy copy by `a.get()`; host data is returned as NumPy returns it."""
    if isinstance(a, DeviceValue):
        return a.get(stream, order)
    return np.asarray(a, order=order)


def empty(shape, dtype=float, order="C"):
    """Return memory that holds NaN or the largest integers, never the zeros that NumPy often gives."""
    check_dtype(dtype)
    array = np.empty(host_argument(shape), dtype, order)
    _poison(array)
    return wrap(array)


def empty_like(prototype, dtype=None, order="K", subok=None, shape=None):
    """Return an `empty` array with the shape and dtype of a device array."""
    array = np.empty_like(device_array(prototype), dtype, order, subok=False, shape=shape)
    _poison(array)
    return wrap(array)


def _poison(array):
    if array.dtype.kind in "fc":
        array[...] = np.nan
    elif array.dtype.kind == "b":
        array[...] = True
    else:
        array[...] = np.iinfo(array.dtype).max


def zeros(shape, dtype=float, order="C"):
    """Return zeros."""
    check_dtype(dtype)
    return wrap(np.zeros(host_argument(shape), dtype, order))


def ones(shape, dtype=float, order="C"):
    """Return ones."""
    check_dtype(dtype)
    return wrap(np.ones(host_argument(shape), dtype, order))


def full(shape, fill_value, dtype=None, order="C"):
    """Return an array filled with one value, a scalar or a 0-d device array."""
    return wrap(np.full(host_argument(shape), operand(fill_value), dtype, order))


def zeros_like(a, dtype=None, order="K", subok=None, shape=None):
    """Return zeros with the shape and dtype of a device array."""
    return wrap(np.zeros_like(device_array(a), dtype, order, subok=False, shape=shape))


def full_like(a, fill_value, dtype=None, order="K", subok=None, shape=None):
    """Return an array filled with one value, with the shape and dtype of a device array."""
    return wrap(np.full_like(device_array(a), operand(fill_value), dtype, order, subok=False, shape=shape))


def on_host(name):
    """Return a function of numbers and shapes only, such as `arange`, whose result is a device array."""
    numpy_function = getattr(np, name)

    def function(*args, **kwargs):
        args = [host_argument(arg) for arg in args]
        return wrap(numpy_function(*args, **{key: host_argument(arg) for key, arg in kwargs.items()}))

    function.__name__ = function.__qualname__ = name
    return function


def get_array_module(*args):
    """Return the `cupy` module if an argument is a device array, otherwise NumPy."""
    import cupy

    return cupy if any(isinstance(arg, DeviceValue) for arg in args) else np


ON_HOST = "arange eye"
CREATION = {name: on_host(name) for name in ON_HOST.split()} | {
    function.__name__: function
    for function in (
        array, asarray, asnumpy, empty, empty_like, zeros, zeros_like, ones, full, full_like,
        get_array_module, fuse,
    )
}  # fmt: skip
for _function in CREATION.values():
    _function.__module__ = "cupy"  # so that pickles name cupy.array, as those of the real CuPy do
