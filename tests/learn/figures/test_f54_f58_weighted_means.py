"""Tests of F54 and F58: weighted means, compared with a softmax and sums computed by the test."""

import numpy as np
import pytest
from datawhale_oracle import embedding
from figure_cells import grids, named, picture, places, row_words, shows

from npformer.functional.attention import attention
from npformer.learn.figures.datawhale_example import embedded

WORDS = ["the", "dog", "saw", "birds"]


def attended(query=2):
    """Return (a, α, E[z]) of the figure's sentence."""
    a = embedded(" ".join(WORDS)).x
    weights = np.exp(a @ a[query])
    weights /= weights.sum()
    return a, weights, weights @ a


def test_the_mean_of_many_draws_approaches_the_expectation():
    figure = picture("F54")
    a, weights, mean = attended()
    draws, read, share, of_many, alpha, expected = grids(figure)[-6:]
    assert row_words(figure, draws) == [f"draw {i}" for i in range(1, 6)]
    assert draws.values.shape == read.values.shape == (5, 4)
    for sample, z in zip(draws.values, read.values, strict=True):
        assert sorted(sample) == [0, 0, 0, 1]
        np.testing.assert_allclose(z, a[sample.argmax()], atol=0.0051)
    assert shows(alpha, weights)
    assert shows(expected, mean)
    error = np.sqrt(weights * (1 - weights) / 1000)
    assert (np.abs(share.values[0] - weights) < 4 * error + 0.005).all()
    np.testing.assert_allclose(of_many.values[0], share.values[0] @ a, atol=0.03)


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
