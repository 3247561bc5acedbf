"""Tests of F31 to F36: self-attention of "Thinking Machines", compared with MultiHeadAttention."""

import math
import re

import numpy as np
import pytest
from datawhale_cells import grids, named, row_words, shows, texts, written_number
from datawhale_oracle import SEED, WORDS, head, run_attention
from matplotlib.colors import to_rgb

from npformer.errors import UserError
from npformer.functional.attention import attention
from npformer.learn.figures import draw
from npformer.learn.figures.f31_to_f36_self_attention import vectors_with
from npformer.plots import text_problems
from npformer.plots.palette import COLOURS


def picture(id, **changes):
    return draw(id, **changes).figure


def test_the_definition_gives_the_cached_arrays():
    _, _, _, cache = run_attention()
    for number in range(8):
        one = head(number)
        assert np.allclose(cache.attention.weights[0, number], one["weights"])
        assert np.allclose(cache.output.x[0, :, 3 * number : 3 * number + 3], one["z"])


@pytest.mark.parametrize("changes", [{}, {"head": 5}, {"seed": 9}, {"d_head": 2}])
def test_f31_queries_keys_values(changes):
    drawn = named(picture("F31", **changes))
    settings = {name: value for name, value in changes.items() if name != "head"}
    one, x = head(changes.get("head", 0), **settings), run_attention(**settings)[0]
    for i in range(2):
        assert shows(drawn[f"x_{i + 1}"][0], x[i])
        for letter in "qkv":
            assert shows(drawn[f"{letter}_{i + 1}"][0], one[letter][i])
    for letter in "qkv":
        assert shows(drawn[f"W^{letter.upper()}"][0], one[f"w{letter}"])


@pytest.mark.parametrize("changes", [{}, {"head": 3}, {"seed": 7}])
def test_f35_projections(changes):
    figure = picture("F35", **changes)
    drawn = named(figure)
    settings = {name: value for name, value in changes.items() if name != "head"}
    one, x = head(changes.get("head", 0), **settings), run_attention(**settings)[0]
    assert len(drawn["X"]) == 3
    for row, letter in enumerate("QKV"):
        left, middle, right = drawn["X"][row], drawn[f"W^{letter}"][0], drawn[letter][0]
        assert shows(left, x)
        assert shows(middle, one[f"w{letter.lower()}"])
        assert shows(right, one[letter.lower()])
        assert row_words(figure, left) == WORDS
        middles = [(cells.top + cells.bottom) / 2 for cells in (left, middle, right)]
        assert np.allclose(middles, middles[0])
        assert left.right < middle.left < middle.right < right.left
    shapes = [text for text, _, _ in texts(figure) if re.fullmatch(r"\d+ × \d+", text)]
    assert shapes == ["2 × 4", "4 × 3", "2 × 3"] * 3


@pytest.mark.parametrize("changes", [{}, {"head": 2}, {"seed": 5}])
def test_f36_attention_as_matrices(changes):
    figure = picture("F36", **changes)
    drawn = named(figure)
    settings = {name: value for name, value in changes.items() if name != "head"}
    one = head(changes.get("head", 0), **settings)
    assert shows(drawn["Q"][0], one["q"])
    assert shows(drawn["K^T"][0], one["k"].T)
    assert all(shows(cells, one["v"]) for cells in drawn["V"])
    assert all(shows(cells, one["z"]) for cells in drawn["Z"])
    (weights,) = [cells for cells in grids(figure) if cells.values.shape == (2, 2)]
    assert shows(weights, one["weights"])
    assert not shows(weights, one["weights"].T)
    assert row_words(figure, weights) == WORDS
    assert np.allclose(weights.values.sum(1), 1, atol=0.011)


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
    all_texts = [text for text, _, _ in texts(figure)]
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


def test_the_columns_of_f34_belong_to_their_words():
    figure = picture("F34")
    at = {text: x for text, x, _ in texts(figure)}
    for word, *below in (("Thinking", "14", ".88"), ("Machines", "12", ".12")):
        assert [at[text] for text in below] == pytest.approx([at[word]] * 2)


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
    all_texts = [text for text, _, _ in texts(figure)]
    weights = np.exp([2, 1, -0.5]) / np.exp([2, 1, -0.5]).sum()
    assert {"2", "1", "−0.5", "÷ √16 = 4"} <= set(all_texts)
    bold = [t for t in figure.axes[0].texts if t.get_weight() == "bold"]
    assert [written_number(t.get_text()) for t in bold] == pytest.approx(weights, abs=0.0051)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sentence": "le chat dort"}, "each of the 3 words"),
        ({"scores": (math.nan, 1)}, "scores is"),
        ({"d_k": 0}, "d_k is 0"),
        ({"d_k": 2.5}, "d_k is 2.5"),
        ({"sentence": ""}, "at least one word"),
    ],
)
def test_invalid_steps(changes, match):
    with pytest.raises(UserError, match=match):
        picture("F34", **changes)


@pytest.mark.parametrize("id", ["F31", "F35", "F36"])
@pytest.mark.parametrize(
    "changes", [{"sentence": "le chat dort"}, {"sentence": "mot"}, {"d_model": 2}, {"seed": 1}]
)
def test_changed_pictures_are_legible_too(id, changes):
    assert text_problems(picture(id, **changes)) == []


@pytest.mark.parametrize("id", ["F31", "F35", "F36"])
def test_a_head_that_does_not_exist(id):
    with pytest.raises(UserError, match=r"heads 0 \.\. 7"):
        picture(id, head=8)
