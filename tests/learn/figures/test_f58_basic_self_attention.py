"""Tests of F58: self-attention without parameters, computed by the test."""

import numpy as np
import pytest
from datawhale_oracle import embedding
from figure_cells import grids, named, picture, places, row_words, shows

from npformer.functional.attention import attention


@pytest.mark.parametrize("query", [2, 4])
def test_f58_basic_self_attention(query):
    figure = picture("F58", query=query)
    ids = [0, 1, 2, 0, 3]
    x, _, _ = embedding(ids, positions="none")
    scores = x @ x.T
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert np.allclose(weights, attention(x, x, x, scale=1.0)[1].weights)
    drawn = named(figure)
    assert shows(drawn[f"y_{query + 1}"][0], weights[query] @ x)
    assert all(shows(drawn[f"x_{j + 1}"][0], x[j][:, None]) for j in range(5))
    (table,) = [cells for cells in grids(figure) if cells.values.shape == (5, 5)]
    assert shows(table, weights)
    assert row_words(figure, table) == ["the", "dog", "saw", "the", "bird"]
    # the numbers beside ⊗ from left to right, and the widths of the lines
    beside = sorted((px, text) for text, px, py in places(figure) if abs(py - 0.66) < 1e-6 and text != "×")
    assert [float(text) for _, text in beside] == pytest.approx(weights[query], abs=0.0051)
    widths = []
    for j in range(5):
        px = (drawn[f"x_{j + 1}"][0].left + drawn[f"x_{j + 1}"][0].right) / 2
        widths += [
            p.get_linewidth()
            for p in figure.axes[0].patches
            if type(p).__name__ == "FancyArrowPatch" and np.allclose(p._path_original.vertices[0], [px, 0.79])
        ]
    assert widths == pytest.approx([6 * w if w >= 0.02 else 0.6 for w in weights[query]])


def test_equal_words_get_equal_weights_without_positions():
    figure = picture("F58", sentence="a b a", query=0)
    (table,) = [cells for cells in grids(figure) if cells.values.shape == (3, 3)]
    assert np.array_equal(table.values[0], table.values[2])
    assert np.array_equal(table.values[:, 0], table.values[:, 2])
