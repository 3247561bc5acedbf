"""Tests of F31 to F36: self-attention of "Thinking Machines", compared with MultiHeadAttention."""

import numpy as np
import pytest
from datawhale_oracle import SEED, WORDS, head, run_attention
from figure_cells import grids, named, picture, row_words, shows

from npformer.learn.figures.f31_to_f36_self_attention import vectors_with


def test_the_definition_gives_the_cached_arrays():
    _, _, _, cache = run_attention()
    for index in range(8):
        one = head(index)
        assert np.allclose(cache.attention.weights[0, index], one["weights"])
        assert np.allclose(cache.output.x[0, :, 3 * index : 3 * index + 3], one["z"])


def test_f36_the_numbers_are_those_of_the_head():
    figure = picture("F36", head=2, seed=5)
    drawn, one = named(figure), head(2, seed=5)
    for name, values in (("Q", one["q"]), ("K^T", one["k"].T), ("V", one["v"]), ("Z", one["z"])):
        assert drawn[name]
        assert all(shows(cells, values) for cells in drawn[name])
    (weights,) = [cells for cells in grids(figure) if cells.values.shape == (2, 2)]
    assert shows(weights, one["weights"])
    assert not shows(weights, one["weights"].T)
    assert row_words(figure, weights) == WORDS


def test_vectors_have_exactly_the_requested_scores():
    q, k, v = vectors_with(WORDS, (112, 96), 64, SEED)
    assert q.shape == k.shape == v.shape == (2, 64)
    assert (k @ q[0]).tolist() == [112, 96]
    for scores, d_k in (((3, -5.5, 7.25), 4), ((1e3, 0, -2), 1)):
        q, k, _ = vectors_with(["a", "b", "c"], scores, d_k, 0)
        assert k @ q[0] == pytest.approx(scores)
