"""Comparison of arrays on the device with arrays on the host."""

import numpy as np
import pytest

from npformer.backend import is_cupy, to_numpy

# float32 kernels are compared with the plain pairs in float64, so they differ by the rounding of float32
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rng(seed=0):
    return np.random.default_rng(seed)


def agree(found, expected, dtype, tolerance=None):
    """Compare two tuples of arrays, the first on the device, relative to the largest number of each array."""
    for one, other in zip(found, expected, strict=True):
        assert is_cupy(one)
        assert one.dtype == dtype
        assert one.shape == other.shape
        error = np.abs(to_numpy(one) - other).max(initial=0)
        assert error <= (tolerance or TOLERANCE[dtype]) * np.abs(other).max(initial=0.1)
