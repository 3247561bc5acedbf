"""Tests of F09: every stage of attention with its matrix."""

import numpy as np
import pytest
from jianshu_grids import grids, same, texts
from jianshu_oracle import softmax, story

from npformer.learn.figures import draw

OTHER = "the key is old"  # another sentence


def oracle(changes):
    names = {"d_model": "d", "n_heads": "heads"}
    return story(**{names.get(name, name): value for name, value in changes.items()})


def read(id, **changes):
    """Return the grids of a figure."""
    return grids(draw(id, **changes).figure)


@pytest.mark.parametrize("changes", [{}, {"causal": True, "sentence": OTHER}])
def test_f09_every_stage_with_its_matrix(changes):
    s = oracle(changes)
    weights = softmax(s.scores, s.may)  # without a query mask
    matrices = [weights @ s.v, weights, np.where(s.may, s.scores, -np.inf), s.scores, s.raw]
    found = read("F09", **changes)
    assert len(found) == 5
    for grid, values in zip(found, matrices, strict=True):
        same(grid.values, values)
    np.testing.assert_array_equal(found[2].painted("masked"), ~s.may)
    boxes = [t for t in texts(draw("F09").figure) if t in ("MatMul", "Scale", "Mask (opt.)", "SoftMax")]
    assert boxes == ["MatMul", "Scale", "Mask (opt.)", "SoftMax", "MatMul"]  # from the bottom up
