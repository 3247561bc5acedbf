"""The values on the device, and the only functions that access their private NumPy array."""

import numpy as np

from ._transfers import transfers

PYTHON_SCALARS = (bool, int, float, complex)
KINDS = "biufc"


class DeviceValue:
    """The owner of the private array; its only subclass, `cupy.ndarray`, adds the operations."""

    __slots__ = ("_array",)
    concrete: type

    def __init_subclass__(cls):
        DeviceValue.concrete = cls


def wrap(result):
    """Convert a NumPy result to CuPy's: arrays and scalars become device arrays, also in lists and tuples."""
    if isinstance(result, (np.ndarray, np.generic, *PYTHON_SCALARS)):
        device = object.__new__(DeviceValue.concrete)
        device._array = np.asarray(result)
        return device
    if isinstance(result, tuple):
        return tuple(wrap(item) for item in result)
    if isinstance(result, list):
        return [wrap(item) for item in result]
    return result


def unsupported(value):
    """Return CuPy's TypeError for an operand that is neither a device array nor a scalar."""
    return TypeError(f"Unsupported type {type(value)}: cupy takes device arrays and scalars")


def device_array(value):
    """Return the private array of a device array; all other values are refused."""
    if not isinstance(value, DeviceValue):
        raise unsupported(value)
    return value._array


def operand(value):
    """Return `device_array`, or a scalar as it is: Python's are weak, NumPy's keep their dtype (NEP 50)."""
    if isinstance(value, DeviceValue):
        return value._array
    if type(value) in PYTHON_SCALARS or isinstance(value, (np.number, np.bool)):
        return value
    raise unsupported(value)


def host_argument(value):
    """Return an axis, a shape, a dtype or an option; arrays are refused, also in nested lists."""
    if isinstance(value, (DeviceValue, np.ndarray)):
        raise TypeError(f"an array ({type(value)}) where cupy takes a number, a shape or an option")
    if isinstance(value, (list, tuple)):
        return type(value)(host_argument(item) for item in value)
    return value


def run(function, *args, **kwargs):
    """Call NumPy on private arrays; like a GPU, never warn of overflow or division by zero."""
    with np.errstate(all="ignore"):
        return wrap(function(*args, **kwargs))


def upload(value, dtype=None):
    """Return a device array with a copy of host data, and count one transfer."""
    array = np.array(value, dtype=dtype)
    check_dtype(array.dtype)
    transfers.to_device += 1
    return wrap(array)


def download(device):
    """Return a NumPy copy of a device array, and count one transfer."""
    transfers.to_host += 1
    return device._array.copy()


def check_dtype(dtype):
    """Check that CuPy has the dtype: bool, integers, floats to 64 bits and complex to 128 bits."""
    dtype = np.dtype(dtype)
    if dtype.kind not in KINDS or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise ValueError(f"Unsupported dtype {dtype}")
