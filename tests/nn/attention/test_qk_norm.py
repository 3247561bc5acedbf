"""Attention with normalized queries and keys, between two sequences."""

import numpy as np
import pytest

from npformer.nn import QKNormAttention


@pytest.mark.parametrize("whole", [False, True])
def test_queries_and_keys_come_from_their_own_arguments(whole):
    layer = QKNormAttention(8, 2, whole=whole, dtype=np.float64)
    query, key = (np.random.default_rng(0).standard_normal((2, length, 8)) for length in (3, 4))
    y = layer(query, key)
    assert y.shape == query.shape
    np.testing.assert_allclose(layer(query, 2 * key, key), y, rtol=1e-4)  # the norm undoes a factor
