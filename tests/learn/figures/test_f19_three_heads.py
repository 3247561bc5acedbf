"""Tests of F19: heads side by side, times the output weights."""

import numpy as np
import pytest
from figure_cells import read, same
from jianshu_oracle import softmax, story


@pytest.mark.parametrize(("d", "heads"), [(6, 3), (4, 2)])
def test_f19_heads_side_by_side_times_w_o(d, heads):
    s = story(d_model=d, n_heads=heads)
    wide = d // heads
    found = read("F19", d_model=d, n_heads=heads)
    maps, middle, last = found[:heads], found[heads : 3 * heads], found[3 * heads :]
    parts = []
    for head in range(heads):
        cut = slice(head * wide, (head + 1) * wide)
        weights = softmax(s.q[:, cut] @ s.k[:, cut].T / np.sqrt(wide), s.may)
        weights[s.pad] = 0
        parts.append(weights @ s.v[:, cut])
        same(maps[head].values, weights)
        same(middle[2 * head].values, s.v[:, cut])
        same(middle[2 * head + 1].values, parts[-1])
    concat, weight, output = last
    same(concat.values, np.concatenate(parts, 1))
    same(weight.values, s.state["output.weight"])
    same(output.values, np.concatenate(parts, 1) @ s.state["output.weight"])
    colours = [concat.faces[0, head * wide] for head in range(heads)]
    for head in range(heads):
        np.testing.assert_allclose(colours[head], middle[2 * head + 1].faces[0, 0])
    assert not np.allclose(colours[0], colours[1])
