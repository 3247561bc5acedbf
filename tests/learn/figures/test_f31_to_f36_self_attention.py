"""Tests of F31 to F36: self-attention of "Thinking Machines", compared with MultiHeadAttention."""

import re

import numpy as np
import pytest
from datawhale_oracle import SEED, WORDS, head, run_attention
from figure_cells import grids, named, number, picture, row_words, shows, texts
from matplotlib.colors import to_rgb

from npformer.functional.attention import attention
from npformer.learn.figures.f31_to_f36_self_attention import vectors_with
from npformer.plots.palette import COLOURS


def test_the_definition_gives_the_cached_arrays():
    _, _, _, cache = run_attention()
    for index in range(8):
        one = head(index)
        assert np.allclose(cache.attention.weights[0, index], one["weights"])
        assert np.allclose(cache.output.x[0, :, 3 * index : 3 * index + 3], one["z"])


# F31, F35 and F36: the queries, keys, values and outputs of one head


def check_vectors(drawn, one, _):
    for i in range(2):
        for letter in "xqkv":
            assert shows(drawn[f"{letter}_{i + 1}"][0], one[letter][i])
    for letter in "qkv":
        assert shows(drawn[f"W^{letter.upper()}"][0], one[f"w{letter}"])


def check_projections(drawn, one, figure):
    assert len(drawn["X"]) == 3
    for row, letter in enumerate("QKV"):
        left, middle, right = drawn["X"][row], drawn[f"W^{letter}"][0], drawn[letter][0]
        for cells, name in ((left, "x"), (middle, f"w{letter.lower()}"), (right, letter.lower())):
            assert shows(cells, one[name])
            assert cells.top + cells.bottom == pytest.approx(left.top + left.bottom)
        assert row_words(figure, left) == WORDS
        assert left.right < middle.left < middle.right < right.left
    shapes = [text for text in texts(figure) if re.fullmatch(r"\d+ × \d+", text)]
    assert shapes == ["2 × 4", "4 × 3", "2 × 3"] * 3


def check_matrices(drawn, one, figure):
    for name, values in (("Q", one["q"]), ("K^T", one["k"].T), ("V", one["v"]), ("Z", one["z"])):
        assert drawn[name]
        assert all(shows(cells, values) for cells in drawn[name])
    (weights,) = [cells for cells in grids(figure) if cells.values.shape == (2, 2)]
    assert shows(weights, one["weights"])
    assert not shows(weights, one["weights"].T)
    assert row_words(figure, weights) == WORDS


@pytest.mark.parametrize(
    ("id", "check", "changes"),
    [
        *(("F31", check_vectors, changes) for changes in ({}, {"head": 5, "seed": 9}, {"d_head": 2})),
        *(("F35", check_projections, changes) for changes in ({}, {"head": 3, "seed": 7})),
        *(("F36", check_matrices, changes) for changes in ({}, {"head": 2, "seed": 5})),
    ],
)
def test_the_numbers_are_those_of_the_head(id, check, changes):
    figure = picture(id, **changes)
    check(named(figure), head(**changes), figure)


# F32 to F34: one word's attention, step by step


def test_vectors_have_exactly_the_requested_scores():
    q, k, v = vectors_with(WORDS, (112, 96), 64, SEED)
    assert q.shape == k.shape == v.shape == (2, 64)
    assert (k @ q[0]).tolist() == [112, 96]
    for scores, d_k in (((3, -5.5, 7.25), 4), ((1e3, 0, -2), 1)):
        q, k, _ = vectors_with(["a", "b", "c"], scores, d_k, 0)
        assert k @ q[0] == pytest.approx(scores)


@pytest.mark.parametrize(("id", "steps"), [("F32", 1), ("F33", 3), ("F34", 5)])
def test_f32_f33_f34_the_numbers_of_the_document(id, steps):
    figure = picture(id)
    all_texts = texts(figure)
    q, k, v = vectors_with(WORDS, (112, 96), 64, SEED)
    _, cache = attention(q, k, v)
    assert cache.weights[0] == pytest.approx([0.880797, 0.119203], abs=1e-6)
    drawn = named(figure)
    for i in range(2):
        for letter, values in zip("qkv", (q, k, v), strict=True):
            assert shows(drawn[f"{letter}_{i + 1}"][0], values[i, :3])
    assert "$q_1 \\cdot k_{1}$ = 112" in all_texts
    assert "$q_1 \\cdot k_{2}$ = 96" in all_texts
    assert all((text in all_texts) == (steps >= 2) for text in ("14", "12", "÷ √64 = 8"))
    bold = [t.get_text() for t in figure.axes[0].texts if t.get_weight() == "bold"]
    assert bold == ([".88", ".12"] if steps >= 3 else [])
    assert ("sum" in all_texts) == ("z_1" in drawn) == (steps >= 5)


@pytest.mark.parametrize("scores", [(112, 96), (80, 88)])
def test_f34_sum_of_faded_values(scores):
    drawn = named(picture("F34", scores=scores))
    q, k, v = vectors_with(WORDS, scores, 64, SEED)
    y, cache = attention(q, k, v)
    weights = cache.weights[0]
    assert shows(drawn["z_1"][0], y[0, :3])
    faded = [drawn[f"{weights[i]:.2f}"[1:] + f" v_{i + 1}"][0] for i in range(2)]
    full = np.array(to_rgb(COLOURS["v"]))
    for i in range(2):
        assert shows(faded[i], weights[i] * v[i, :3])
        assert faded[i].faces[0, 0] == pytest.approx(1 - weights[i] * (1 - full), abs=0.003)


def test_other_scores_and_widths_change_the_weights():
    figure = picture("F33", sentence="le chat dort", scores=(8, 4, -2), d_k=16)
    all_texts = texts(figure)
    weights = np.exp([2, 1, -0.5]) / np.exp([2, 1, -0.5]).sum()
    assert {"2", "1", "−0.5", "÷ √16 = 4"} <= set(all_texts)
    bold = [t for t in figure.axes[0].texts if t.get_weight() == "bold"]
    assert [number(t.get_text()) for t in bold] == pytest.approx(weights, abs=0.0051)
