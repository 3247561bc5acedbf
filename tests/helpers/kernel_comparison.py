"""The kernels of a device, and their comparison with the plain pairs on the host."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from npformer.backend import is_cupy, to_backend, to_numpy
from npformer.kernels import cpu, gpu

# float32 kernels are compared with the plain pairs in float64, so they differ by the rounding of float32
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rng(seed=0):
    return np.random.default_rng(seed)


def as_tuple(gradients):
    return gradients if isinstance(gradients, tuple) else (gradients,)


class Device(NamedTuple):
    """A device and its kernels. The tests with GPU use the fixture `device`."""

    backend: str
    kernels: Any

    def place(self, *arrays):
        """Return arrays on the device, and all other objects unchanged."""
        return tuple(to_backend(a, self.backend) if isinstance(a, np.ndarray) else a for a in arrays)

    def random(self, dtype, *shapes):
        """Return random numbers, on the device in the dtype of the kernel and on the host in float64."""
        short = [rng(seed).standard_normal(shape).astype(dtype) for seed, shape in enumerate(shapes)]
        return self.place(*short), [array.astype(np.float64) for array in short]

    def agree(self, found, expected, dtype, tolerance=None, least=0.1):
        """Check that two tuples of arrays agree, relative to the largest number of each array.

        A largest number below `least`, by default a tenth of the inputs, counts as `least`, because it is a
        difference of larger numbers.
        """
        for one, other in zip(found, expected, strict=True):
            assert is_cupy(one) == (self is GPU)
            assert one.dtype == dtype
            assert one.shape == other.shape
            error = np.abs(to_numpy(one) - other).max(initial=0)
            assert error <= (tolerance or TOLERANCE[dtype]) * np.abs(other).max(initial=least)


CPU, GPU = Device("numpy", cpu), Device("cupy", gpu)
