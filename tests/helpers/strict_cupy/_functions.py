"""CuPy's functions of arrays, made from the table of signatures."""

import math

import numpy as np

from ._fuse import Traced, elementwise, reduction
from ._indexing import index_argument, wrapped
from ._signatures import ARRAYS, parse
from ._values import DeviceValue, check_dtype, device_array, host_argument, operand, run, unsupported, wrap


def device_function(name, numpy_function, positional, marks):
    """Return a function of device arrays with these arguments and no others."""

    def function(*args, **kwargs):
        if any(isinstance(arg, Traced) for arg in args):
            if name == "where":
                return elementwise(numpy_function, args, kwargs)
            return reduction(numpy_function, name, args, kwargs)
        if len(args) > len(positional):
            raise TypeError(f"cupy.{name} takes {len(positional)} positional arguments, not {len(args)}")
        if wrong := sorted(set(kwargs) - set(marks)):
            raise TypeError(f"cupy.{name} got an unexpected keyword argument {wrong[0]!r}")
        values = [_checked(marks[key], arg) for key, arg in zip(positional, args, strict=False)]
        keywords = {key: _checked(marks[key], arg) for key, arg in kwargs.items()}
        result = run(numpy_function, *values, **keywords)
        out = dict(zip(positional, args, strict=False)).get("out", kwargs.get("out"))
        return result if out is None else out

    function.__name__ = function.__qualname__ = name
    function.__module__ = "cupy"
    return function


def _checked(mark, value):
    if value is None:
        return None
    if mark == "!":
        return device_array(value)
    if mark == "?":
        return operand(value)
    if mark == "+":
        if not isinstance(value, (list, tuple)):
            raise unsupported(value)
        return [device_array(item) for item in value]
    return host_argument(value)


def take(a, indices, axis=None, out=None):
    """Take as NumPy does with `mode="wrap"`: no index is out of range."""
    array, index = device_array(a), index_argument(indices)
    index = wrapped(index, array.size if axis is None else array.shape[axis])
    result = np.take(array, index, axis=axis)
    if out is None:
        return wrap(result)
    device_array(out)[...] = result
    return out


def take_along_axis(a, indices, axis):
    """Take as NumPy does, except that indices wrap around."""
    array, index = device_array(a), device_array(indices)
    if axis is None:
        array, axis = array.ravel(), 0
    return wrap(np.take_along_axis(array, wrapped(index, array.shape[axis]), axis))


def erf(x):
    """Compute the error function, for float32 and float64 only, also inside a fused function."""
    if isinstance(x, Traced):
        return elementwise(lambda value: np.vectorize(math.erf)(value).astype(value.dtype), (x,), {})
    array = np.asarray(operand(x))
    if array.dtype.kind == "c":
        raise TypeError("cupyx.scipy.special.erf is for real values")
    result = array.astype(np.float32 if array.dtype in (np.float16, np.float32) else np.float64)
    result.flat = [math.erf(value) for value in array.flat]
    return wrap(result)


def astype(array, dtype, order="K", casting=None, subok=None, copy=True):
    """Convert as NumPy's method does; CuPy has no `casting` and no `subok`."""
    if casting is not None or subok is not None:
        raise TypeError("casting and subok are not supported yet")
    check_dtype(dtype)
    private = device_array(array)
    result = private.astype(dtype, order=order, copy=copy)
    return array if result is private else wrap(result)


def fact(name):
    """Return a function about arrays whose result is on the host: a shape, a dtype, a bool."""
    numpy_function = getattr(np, name)

    def function(*args, **kwargs):
        plain = [arg._array if isinstance(arg, DeviceValue) else host_argument(arg) for arg in args]
        return numpy_function(*plain, **kwargs)

    function.__name__ = name
    return function


FACTS = "ndim shape size result_type iscomplexobj shares_memory"


FUNCTIONS = {
    **{name: device_function(name, getattr(np, name), *spec) for name, spec in parse(ARRAYS).items()},
    **{name: fact(name) for name in FACTS.split()},
    "take": take,
    "take_along_axis": take_along_axis,
}
