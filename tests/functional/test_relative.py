"""Relative positions: both computations give the same, the one with less memory, and limits."""

import math
import tracemalloc

import numpy as np
import pytest

import npformer.functional as F
from npformer import UserError

rng = np.random.default_rng(0)
Q, K, V = (rng.standard_normal((2, 3, n, width)) for n, width in ((4, 5), (6, 5), (6, 2)))
KEY_POSITIONS, VALUE_POSITIONS = rng.standard_normal((5, 5)), rng.standard_normal((5, 2))  # from -2 to 2
ARRAYS = (Q, K, V, KEY_POSITIONS, VALUE_POSITIONS)
PAIRS = {
    "plain": (F.relative_attention, F.relative_attention_backward),
    "by distance": (F.relative_attention_by_distance, F.relative_attention_by_distance_backward),
}
either_way = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


def test_the_distances_of_the_papers_figure():
    """Tokens 1 .. 6 and k = 2: all distances beyond 2 are treated as 2."""
    distance = F.clipped_distance(6, 6, 2, Q)
    assert distance.tolist() == [
        [2, 3, 4, 4, 4, 4],
        [1, 2, 3, 4, 4, 4],
        [0, 1, 2, 3, 4, 4],
        [0, 0, 1, 2, 3, 4],
        [0, 0, 0, 1, 2, 3],
        [0, 0, 0, 0, 1, 2],
    ]
    assert F.clipped_distance(2, 6, 2, Q, start=4).tolist() == distance[4:].tolist()
    assert F.clipped_distance(3, 3, 9, Q).tolist() == [[9, 10, 11], [8, 9, 10], [7, 8, 9]]


@either_way
def test_far_keys_have_the_vectors_of_the_largest_distance(pair):
    """There are five vectors, so the largest distance is 2."""
    distance = F.clipped_distance(4, 6, 2, Q)
    scores = np.einsum("bhtk,bhtsk->bhts", Q, K[:, :, None] + KEY_POSITIONS[distance]) / math.sqrt(5)
    expected = np.einsum("bhts,bhtsl->bhtl", F.softmax(scores)[0], V[:, :, None] + VALUE_POSITIONS[distance])
    np.testing.assert_allclose(pair[0](*ARRAYS)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"start": 2, "scale": 0.3},
        {"p": 0.4},
        {"mask": (np.arange(6) < 4) & (np.arange(4)[:, None] != 2)},
        {"mask": np.zeros((2, 1, 4, 6), bool)},
    ],
    ids=str,
)
@pytest.mark.parametrize("given", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_both_computations_give_the_same(settings, given):
    """Compare values, weights, and the gradients of all arrays."""
    positions = [p if g else None for p, g in zip(ARRAYS[3:], given, strict=True)]
    outcomes = []
    for f, f_backward in PAIRS.values():
        y, cache = f(Q, K, V, *positions, **settings, rng=np.random.default_rng(3))
        outcomes.append([y, cache.weights, *f_backward(np.cos(y), cache)])
    assert cache.mask is settings.get("mask")
    if not settings.keys() & {"p", "mask"}:
        np.testing.assert_allclose(F.softmax(cache.scores)[0], cache.weights, rtol=1e-11)
    for plain, ours in zip(*outcomes, strict=True):
        if plain is None:
            assert ours is None
        else:
            np.testing.assert_allclose(ours, plain, rtol=1e-11, atol=1e-13)


def test_spread_and_collect_are_adjoint():
    distance = F.clipped_distance(4, 6, 2, Q, start=1)
    x, y = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 4, 6))
    spread, collected = F.spread_by_distance(x, distance), F.collect_by_distance(y, distance, 5)
    np.testing.assert_array_equal(spread, np.take_along_axis(x, np.broadcast_to(distance, y.shape), -1))
    assert (spread * y).sum() == pytest.approx((x * collected).sum(), rel=1e-12)


def test_by_distance_needs_no_array_of_the_vectors_of_all_pairs():
    """Forward and backward allocate less memory than one array (B, H, T, S, K)."""
    shape = (4, 4, 48, 16)
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    positions = rng.standard_normal((17, 16)).astype(np.float32)  # R is about as large as K, as in the paper

    def peak(f, f_backward):
        tracemalloc.start()
        y, cache = f(q, k, v, positions, positions)
        f_backward(y, cache)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    plain, by_distance = (peak(*pair) for pair in PAIRS.values())
    of_pairs = 4 * math.prod(shape) * 48  # bytes of (B, H, T, S, K)
    assert plain > 2 * of_pairs
    assert by_distance < of_pairs
    assert by_distance < plain / 6


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ((KEY_POSITIONS, VALUE_POSITIONS[1:4]), "there are 5 vectors for keys and 3 for values"),
        ((KEY_POSITIONS[1:], None), r"there are 4 vectors for the distances: give 2 k \+ 1"),
    ],
)
@either_way
def test_vectors_of_the_wrong_number(pair, positions, message):
    with pytest.raises(UserError, match=message):
        pair[0](Q, K, V, *positions)
