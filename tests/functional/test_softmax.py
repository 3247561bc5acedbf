"""The softmax and its logarithm for numbers whose exponentials overflow. test_pairs.py has the rest."""

import numpy as np
import pytest

from npformer.functional import log_softmax, softmax


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_numbers_do_not_overflow(dtype):
    x = np.array([[1000.0, 1000.0, -1000.0], [-1000.0, -1000.0, -3000.0]], dtype)
    y, _ = softmax(x)
    np.testing.assert_array_equal(y, np.array([[0.5, 0.5, 0]] * 2, dtype))
    log_y, _ = log_softmax(x)
    assert log_y.dtype == dtype
    np.testing.assert_allclose(log_y, np.log(0.5) + [[0, 0, -2000]] * 2, rtol=1e-6)
