"""Tests of F20: the shapes beside the arrows of two layers."""

import numpy as np
import pytest
from figure_cells import draw

from npformer.learn.figures.jianshu_example import dataset

CHANGED = {"sentences": 3, "length": 6, "d_model": 24, "n_heads": 2, "d_ff": 48}


def shapes_beside(figure):
    """Return every shape as text with its nearest arrow, as pairs (text, (x, y))."""
    return [(t.get_text(), t.get_position()) for t in figure.axes[0].texts if "×" in t.get_text()]


@pytest.mark.parametrize("changes", [{"sentences": 4, "d_model": 32, "d_ff": 64}, CHANGED])
def test_f20_the_shapes_are_those_of_the_batch(changes):
    heads, d, d_ff = changes.get("n_heads", 8), changes["d_model"], changes["d_ff"]
    examples = dataset().train[: changes["sentences"]]
    most = changes.get("length") or 99
    b = len(examples)
    s = min(most, 1 + max(len(x) for x, _ in examples))
    t = min(most, 1 + max(len(y) for _, y in examples))
    figure = draw("F20", **changes).figure
    columns = {"encoder": (s, s), "first": (t, t), "second": (t, s)}
    found = sorted(shapes_beside(figure), key=lambda shape: shape[1][0])
    edges = [t.get_position()[0] for t in figure.axes[0].texts if t.get_weight() == "bold"]
    for index, (queries, keys) in enumerate(columns.values()):
        right = edges[index + 1] if index < 2 else np.inf
        mine = [text.split()[-1] for text, (x, _) in found if edges[index] <= x < right]
        model, head = f"{b}×{queries}×{d}", f"{b}×{heads}×{queries}×{d // heads}"
        expected = [f"{b}×{heads}×{queries}×{keys}"] * 2  # scores and weights
        expected += [head] * 2 + [f"{b}×{heads}×{keys}×{d // heads}"] * 2  # q and z, k and v
        if index == 1:
            expected += [model] * 4  # in, concat, W^O, add & norm
        else:
            expected += [model] * 6 + [f"{b}×{queries}×{d_ff}"]  # and three of the feed-forward network
        if index == 2:
            expected += [f"{b}×{keys}×{d}"]  # the encoder's output
        assert sorted(mine) == sorted(expected)
