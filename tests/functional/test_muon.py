"""The orthogonalized matrices of Muon."""

import numpy as np
import pytest

from npformer.functional.muon import orthogonalize


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_five_iterations_bring_all_singular_values_near_1(shape, rng):
    g = rng.standard_normal(shape)
    x = orthogonalize(g)
    np.testing.assert_array_equal(x, orthogonalize(g, 5))
    length = np.linalg.norm(g)
    np.testing.assert_allclose(orthogonalize(1e-7 * g / length, 0), g / length / 2, rtol=1e-12)
    u, sizes, v = np.linalg.svd(x)
    assert 0.6 < sizes.min() <= sizes.max() < 1.3
    aligned = u[:, : len(sizes)].T @ g @ v[: len(sizes)].T  # diagonal in the singular vectors of g
    np.testing.assert_allclose(aligned, np.diag(aligned.diagonal()), atol=1e-12)
