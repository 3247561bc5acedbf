"""The device that has nothing to wait for, its empty memory pool, and random numbers unlike NumPy's."""

import numpy as np

from ._values import host_argument, wrap


class Device:
    """Device 0, the only one."""

    def synchronize(self):
        """Do nothing, because every call has ended when it returns."""


class MemoryPool:
    """An empty memory pool."""

    def total_bytes(self):
        """Return 0."""
        return 0


class Philox4x3210:
    """A source of random bits that differ from NumPy's for every seed."""

    __module__ = "cupy.random"

    def __init__(self, seed=None):
        self.source = np.random.Philox(host_argument(seed))


class Generator:
    """The method of CuPy's generator that npformer uses."""

    __module__ = "cupy.random"

    def __init__(self, bit_generator):
        if not isinstance(bit_generator, Philox4x3210):
            raise TypeError(f"a generator is made of a source of random bits, not of {type(bit_generator)}")
        self._draw = np.random.Generator(bit_generator.source)

    def random(self, size=None, dtype=np.float64):
        """Draw uniform numbers in [0, 1), float32 or float64."""
        return wrap(self._draw.random(host_argument(size), dtype))


def default_rng(seed=None):
    """Return a generator with a seed."""
    return Generator(Philox4x3210(seed))
