"""The part of `cupy.cuda` that can run without a device, and random numbers that differ from NumPy's."""

import numpy as np

from ._values import check_dtype, device_array, host_argument, wrap


class _Context:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def use(self):
        """Do nothing, because there is only one."""

    def synchronize(self):
        """Do nothing, because every call has ended when it returns."""


class Device(_Context):
    """Device 0, the only one."""

    compute_capability = "00"

    def __init__(self, device=None):
        if device not in (None, 0):
            raise ValueError(f"invalid device ordinal {device}: the stand-in has one device")
        self.id = 0


class Stream(_Context):
    """A queue of work; `Stream.null` is the current one."""

    null: "Stream"

    def __init__(self, null=False, non_blocking=False):
        self.ptr = 0


Stream.null = Stream()


class MemoryPool:
    """An empty memory pool."""

    def free_all_blocks(self):
        """Do nothing, because nothing can be freed."""

    def used_bytes(self):
        """Return 0."""
        return 0

    total_bytes = used_bytes


class Philox4x3210:
    """A source of random bits that differ from NumPy's for every seed."""

    __module__ = "cupy.random"

    def __init__(self, seed=None):
        self.source = np.random.Philox(host_argument(seed))


class Generator:
    """The methods of CuPy's generator that npformer uses."""

    __module__ = "cupy.random"

    def __init__(self, bit_generator):
        if not isinstance(bit_generator, Philox4x3210):
            raise TypeError(f"a generator is made of a source of random bits, not of {type(bit_generator)}")
        self._draw = np.random.Generator(bit_generator.source)

    def random(self, size=None, dtype=np.float64, out=None):
        """Draw uniform numbers in [0, 1), float32 or float64."""
        return _into(out, self._draw.random(_size(size, out), dtype))

    def standard_normal(self, size=None, dtype=np.float64, out=None):
        """Draw normal numbers with mean 0 and standard deviation 1, float32 or float64."""
        return _into(out, self._draw.standard_normal(_size(size, out), dtype))

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64):
        """Draw uniform numbers in [low, high)."""
        return wrap(np.asarray(self._draw.uniform(low, high, host_argument(size)), dtype))

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        """Draw integers from low to high."""
        check_dtype(dtype)
        return wrap(self._draw.integers(low, high, host_argument(size), dtype, endpoint))


def default_rng(seed=None):
    """Return a generator with a seed."""
    return Generator(Philox4x3210(seed))


def _size(size, out):
    return host_argument(size) if out is None else device_array(out).shape


def _into(out, drawn):
    if out is None:
        return wrap(drawn)
    device_array(out)[...] = drawn
    return out
