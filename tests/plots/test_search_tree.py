"""Tests of trees of a beam search."""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_model

from npformer.errors import UserError
from npformer.generation.beam import beam_search
from npformer.plots import beam_tree, steps_of_trace, text_problems
from npformer.plots.search_tree import Node

TREE = [
    [(-1, "I", -0.3, True), (-1, "a", -0.6, True), (-1, "am", -2.4, False)],
    [(1, "student", -1.0, True), (0, "am", -0.5, True), (0, "été", -1.9, False)],
    [(1, "a", -0.7, True), (0, "</s>", -1.4, True)],
]


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_a_branch_connects_each_token_to_its_parent():
    figure = beam_tree(TREE, title="k = 2")
    ax = figure.axes[0]
    places = {(round(t.get_position()[0], 3), t.get_text()): t.get_position()[1] for t in ax.texts}
    columns = sorted({x for x, _ in places})
    assert len(columns) == 4
    middle = {(columns.index(x) - 1, name): y for (x, name), y in places.items()}
    nodes = [(t, node) for t, step in enumerate(TREE) for node in step]
    ends = sorted((*np.round(line.get_ydata(), 3), line.get_linewidth() > 2) for line in ax.lines)

    def height(t, name):  # the middle of a node, half a line below its word
        return middle[-1, "<s>"] if t < 0 else middle[t, name] - 9 * 1.25 / 72 / 2

    expected = [
        (round(height(t - 1, TREE[t - 1][parent][1] if t else ""), 3), round(height(t, word), 3), kept)
        for t, (parent, word, _, kept) in nodes
    ]
    assert np.allclose(ends, sorted(expected), atol=2e-3)
    assert {"−.30", "−2.40", "−1.40"} <= set(texts(ax))
    assert text_problems(figure) == []


def test_the_tree_of_a_real_search():
    model, trace = tiny_model(), []
    beam_search(model, tiny_batch()[0], beam=3, trace=trace)
    vocabulary = [f"w{i}" for i in range(9)]
    steps = steps_of_trace(trace[0], vocabulary, model.config.end_id)
    assert [[(n.parent, n.log_prob) for n in s] for s in steps] == [
        [(b.parent, b.log_prob) for b in s] for s in trace[0]
    ]
    assert steps[0][0].token == vocabulary[trace[0][0][0].token]
    for t, step in enumerate(steps[:-1]):
        for index, node in enumerate(step):
            led_on = any(later.parent == index for later in steps[t + 1])
            assert node.kept == (led_on or trace[0][t][index].token == model.config.end_id)
    assert text_problems(beam_tree(steps)) == []


def test_difficult_trees():
    wide = [[Node(-1, "Donaudampf $1", -0.5, True)] * 20]
    assert text_problems(beam_tree(wide)) == []
    for wrong in (
        [],
        [[]],
        [[(-1, "a")]],
        [[(0, "a", -1.0, True)]],
        [[(-1, "a", -1.0, True)], [(1, "b", -2.0, True)]],
    ):
        with pytest.raises(UserError, match=r"no steps|a node of the tree|give -1, the start|not in step 0"):
            beam_tree(wrong)
    with pytest.raises(UserError, match="does not fit"):
        beam_tree([[(-1, "a", -1.0, True)]] + [[(0, "a", -1.0, True)]] * 30)
