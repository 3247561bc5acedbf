"""The little of `cupy.cuda` that runs without a device, and random numbers that are not NumPy's."""

import numpy as np

from ._values import check_dtype, device_array, host_argument, wrap


class _Context:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def use(self):
        """Nothing: there is one of these."""

    def synchronize(self):
        """Nothing: every call has ended when it returns."""


class Device(_Context):
    """Device 0, the only one."""

    compute_capability = "00"

    def __init__(self, device=None):
        if device not in (None, 0):
            raise ValueError(f"invalid device ordinal {device}: the stand-in has one device")
        self.id = 0


class Stream(_Context):
    """A queue of work; `Stream.null` is the one in use."""

    null: "Stream"

    def __init__(self, null=False, non_blocking=False):
        self.ptr = 0


Stream.null = Stream()


class MemoryPool:
    """A pool that holds nothing."""

    def free_all_blocks(self):
        """Nothing to free."""

    def used_bytes(self):
        """Nothing used."""
        return 0

    total_bytes = used_bytes


class Philox4x3210:
    """A source of random bits; no seed gives the numbers it gives in NumPy."""

    __module__ = "cupy.random"

    def __init__(self, seed=None):
        self.source = np.random.Philox(host_argument(seed))


class Generator:
    """The methods of CuPy's generator that are used."""

    __module__ = "cupy.random"

    def __init__(self, bit_generator):
        if not isinstance(bit_generator, Philox4x3210):
            raise TypeError(f"a generator is made of a source of random bits, not of {type(bit_generator)}")
        self._draw = np.random.Generator(bit_generator.source)

    def random(self, size=None, dtype=np.float64, out=None):
        """Uniform on [0, 1), float32 or float64."""
        return _into(out, self._draw.random(_size(size, out), dtype))

    def standard_normal(self, size=None, dtype=np.float64, out=None):
        """Normal with mean 0 and deviation 1, float32 or float64."""
        return _into(out, self._draw.standard_normal(_size(size, out), dtype))

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64):
        """Uniform on [low, high)."""
        return wrap(np.asarray(self._draw.uniform(low, high, host_argument(size)), dtype))

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        """Integers from low to high."""
        check_dtype(dtype)
        return wrap(self._draw.integers(low, high, host_argument(size), dtype, endpoint))


def default_rng(seed=None):
    """A generator from a seed."""
    return Generator(Philox4x3210(seed))


def _size(size, out):
    return host_argument(size) if out is None else device_array(out).shape


def _into(out, drawn):
    if out is None:
        return wrap(drawn)
    device_array(out)[...] = drawn
    return out
