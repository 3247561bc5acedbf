"""CappedAttention and BucketedAttention beside MultiHeadAttention."""

import numpy as np
import pytest

from npformer.nn import BucketedAttention, CappedAttention, MultiHeadAttention

X = np.random.default_rng(0).standard_normal((2, 3, 8))


def make(kind, **settings):
    return kind(8, 2, **settings, rng=np.random.default_rng(1), dtype=np.float64)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kind", [CappedAttention, BucketedAttention])
def test_without_an_effect_on_the_scores_it_is_multi_head_attention(kind, scale):
    """A cap that no score comes near, and a bias of 0, change nothing."""
    plain = make(MultiHeadAttention, scale=scale)
    other = make(kind, scale=scale, **({"cap": 1e6} if kind is CappedAttention else {}))
    if kind is BucketedAttention:
        other.table.value[...] = 0
    (y, cache), (expected, plain_cache) = other.forward(X), plain.forward(X)
    np.testing.assert_allclose(y, expected, rtol=1e-9)
    np.testing.assert_allclose(cache.attention.weights, plain_cache.attention.weights, rtol=1e-9)
