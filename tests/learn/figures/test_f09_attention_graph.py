"""Tests of F09: every stage of attention with its matrix."""

import numpy as np
import pytest
from figure_cells import picture, read, same, texts
from jianshu_oracle import softmax, story


@pytest.mark.parametrize("changes", [{}, {"causal": True, "sentence": "the key is old"}])
def test_f09_every_stage_with_its_matrix(changes):
    s = story(**changes)
    weights = softmax(s.scores, s.may)  # without a query mask
    found = read("F09", **changes)
    matrices = [weights @ s.v, weights, np.where(s.may, s.scores, -np.inf), s.scores, s.raw]
    for grid, values in zip(found, matrices, strict=True):
        same(grid.values, values)
    np.testing.assert_array_equal(found[2].painted("masked"), ~s.may)
    stages = ["MatMul", "Scale", "Mask (opt.)", "SoftMax", "MatMul"]  # from the bottom up
    assert [text for text in texts(picture("F09")) if text in stages] == stages
