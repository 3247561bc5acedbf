"""The tolerance for kernels of low precision: it grows with the length of the sums."""

import numpy as np
import pytest

from npformer.checking.foreign.reference import SAFETY, rounding_error


@pytest.mark.parametrize("length", [4, 16, 256])
def test_the_error_of_a_bias_grows_with_the_number_of_positions(length):
    y = np.zeros((length, 2))
    error = rounding_error(2.0**-7, {"x": np.zeros((2, 2)), "bias": np.zeros(2)}, "bias", y)
    assert error == SAFETY * np.sqrt(length) * 2.0**-8


def test_sums_in_float32_stay_within_the_tolerance():
    rng = np.random.default_rng(0)
    x, w, dy = (rng.standard_normal(shape) for shape in ((64, 128), (128, 32), (64, 32)))
    exact = x.T @ dy
    found = x.astype(np.float32).T @ dy.astype(np.float32)
    error = np.sqrt(((found - exact) ** 2).sum() / (exact**2).sum())
    tolerance = rounding_error(float(np.finfo(np.float32).eps), {"x": x, "w": w}, "w", dy)
    assert error <= tolerance < 1e-5
