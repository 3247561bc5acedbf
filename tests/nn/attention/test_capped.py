"""CappedAttention beside MultiHeadAttention."""

import numpy as np
import pytest

from npformer.nn import CappedAttention, MultiHeadAttention


@pytest.mark.parametrize("scale", [True, False])
def test_a_cap_that_no_score_comes_near_changes_nothing(scale):
    x = np.random.default_rng(0).standard_normal((2, 3, 8))
    plain, capped = (
        kind(8, 2, scale=scale, rng=np.random.default_rng(1), dtype=np.float64, **cap)
        for kind, cap in ((MultiHeadAttention, {}), (CappedAttention, {"cap": 1e6}))
    )
    np.testing.assert_allclose(capped(x), plain(x), rtol=1e-9)
