"""Tests of F37 to F40: the heads of "Thinking Machines", compared with MultiHeadAttention."""

import math
from itertools import pairwise

import numpy as np
import pytest
from datawhale_oracle import encoder, head, run_attention
from figure_cells import grids, named, picture, shows, texts
from matplotlib.colors import to_rgb

from npformer.plots.palette import COLOURS


@pytest.mark.parametrize("heads", [(0, 1), (6, 3)])
def test_f37_two_heads(heads):
    drawn = named(picture("F37", heads=heads))
    assert shows(drawn["X"][0], run_attention()[0])
    for number in heads:
        one = head(number)
        for letter in "qkv":
            assert shows(drawn[f"W_{number}^{letter.upper()}"][0], one[f"w{letter}"])
            assert shows(drawn[f"{letter.upper()}_{number}"][0], one[letter])
    for letter in "qkv":  # the second head is paler
        strong, pale = (drawn[f"{letter.upper()}_{number}"][0].faces[0, 0] for number in heads)
        assert np.allclose(strong, to_rgb(COLOURS[letter]))
        assert (pale >= strong - 1e-9).all()
        assert pale.sum() > strong.sum() + 0.1


@pytest.mark.parametrize("n_heads", [8, 3])
def test_f38_eight_outputs(n_heads):
    figure = picture("F38", n_heads=n_heads)
    drawn = named(figure)
    x, _, _, cache = run_attention(n_heads=n_heads)
    assert shows(drawn["X"][0], x)
    assert {name for name in drawn if name.startswith("Z")} == {f"Z_{i}" for i in range(n_heads)}
    for number in range(n_heads):
        z = cache.attention.weights[0, number] @ cache.attention.v[0, number]
        assert shows(drawn[f"Z_{number}"][0], z)
    assert f"head #{n_heads - 1}" in texts(figure)


@pytest.mark.parametrize("n_heads", [8, 2])
def test_f39_joined_heads(n_heads):
    figure = picture("F39", n_heads=n_heads)
    drawn = named(figure)
    _, layer, z, cache = run_attention(n_heads=n_heads)
    weight = layer.output.weight.value  # (H·K, D)
    row = sorted((drawn[f"Z_{i}"][0] for i in range(n_heads)), key=lambda cells: cells.left)
    assert np.allclose(np.hstack([cells.values for cells in row]), cache.output.x[0], rtol=0, atol=0.0051)
    assert all(math.isclose(a.right, b.left) for a, b in pairwise(row))
    assert shows(drawn["Z"][0], z)
    column = max(cells.left for cells in grids(figure))
    blocks = [cells for cells in grids(figure) if math.isclose(cells.left, column)]
    blocks.sort(key=lambda cells: -cells.top)
    assert np.allclose(np.vstack([cells.values for cells in blocks]), weight, rtol=0, atol=0.0051)
    for number in range(2):  # head by head
        assert shows(drawn[f"Z_{number}"][1], head(number, n_heads=n_heads)["z"])
        assert shows(drawn[f"W^O_{number}"][0], weight[3 * number : 3 * number + 3])
    assert {f"2 × {3 * n_heads}", f"{3 * n_heads} × 4"} <= set(texts(figure))


@pytest.mark.parametrize(("n_heads", "shown"), [(8, (0, 1, 7)), (2, (0, 1))])
def test_f40_recap(n_heads, shown):
    figure = picture("F40", n_heads=n_heads)
    drawn = named(figure)
    x, layer, z, _ = run_attention(n_heads=n_heads)
    assert shows(drawn["X"][0], x, 1)
    assert shows(drawn["Z"][0], z, 1)
    assert shows(drawn["R"][0], encoder(2, n_heads=n_heads)[3], 1)
    for number in shown:
        one = head(number, n_heads=n_heads)
        for letter in "qkv":
            assert shows(drawn[f"W^{letter.upper()}_{number}"][0], one[f"w{letter}"], 1)
            assert shows(drawn[f"{letter.upper()}_{number}"][0], one[letter], 1)
        assert shows(drawn[f"Z_{number}"][0], one["z"], 1)
    lefts = sorted({round(cells.left, 6) for cells in grids(figure)})
    column = [cells for cells in grids(figure) if math.isclose(cells.left, lefts[-2], abs_tol=1e-5)]
    stacked = np.vstack([cells.values for cells in sorted(column, key=lambda cells: -cells.top)])
    assert np.allclose(stacked, layer.output.weight.value, rtol=0, atol=0.051)
    all_texts = "\n".join(texts(figure))
    assert all(f"{step}  " in all_texts for step in range(1, 6))
    assert "Thinking Machines" in all_texts
