"""Tests of F31 to F40: self-attention of "Thinking Machines", compared with MultiHeadAttention."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from datawhale_cells import grids, named, row_words, shows, texts, written_number
from matplotlib.colors import to_rgb

from npformer.errors import UserError
from npformer.functional.attention import attention
from npformer.learn.figures import Studio, draw
from npformer.learn.figures.f31_to_f36_self_attention import vectors_with
from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.nn import InputEmbedding
from npformer.nn.attention import MultiHeadAttention
from npformer.plots import text_problems
from npformer.plots.palette import COLOURS

SEED = 2
WORDS = ["Thinking", "Machines"]
STUDIO = Studio(folder="no-model-is-needed")


def picture(id, **changes):
    return draw(id, STUDIO, **changes).figure


def run(n_tokens=2, *, seed=SEED, n_heads=8, d_head=3):
    """Run the layer of the example and return (x, layer, z, cache)."""
    rng = np.random.default_rng(seed)
    embed = InputEmbedding(n_tokens, 4, n_tokens, positions="none", rng=rng, dtype=np.float64)
    x, _ = embed.forward(np.arange(n_tokens)[None])
    layer = MultiHeadAttention(4, n_heads, d_head=d_head, bias=False, rng=rng, dtype=np.float64)
    z, cache = layer.forward(x)
    return x[0], layer, z[0], cache


def head(number, **settings):
    """Compute the arrays of one head from the definition: softmax(x Wq (x Wk)ᵀ / √K) x Wv."""
    x, layer, _, _ = run(**settings)
    width = layer.d_head
    wq, wk, wv = (
        part.weight.value[:, number * width : (number + 1) * width]
        for part in (layer.query, layer.key, layer.value)
    )
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = np.exp(q @ k.T / math.sqrt(width))
    weights = scores / scores.sum(1, keepdims=True)
    return {"wq": wq, "wk": wk, "wv": wv, "q": q, "k": k, "v": v, "weights": weights, "z": weights @ v}


def test_the_definition_gives_the_cached_arrays():
    _, _, _, cache = run()
    for number in range(8):
        one = head(number)
        assert np.allclose(cache.attention.weights[0, number], one["weights"])
        assert np.allclose(cache.output.x[0, :, 3 * number : 3 * number + 3], one["z"])


@pytest.mark.parametrize("changes", [{}, {"head": 5}, {"seed": 9}, {"d_head": 2}])
def test_f31_queries_keys_values(changes):
    drawn = named(picture("F31", **changes))
    settings = {name: value for name, value in changes.items() if name != "head"}
    one, x = head(changes.get("head", 0), **settings), run(**settings)[0]
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
    one, x = head(changes.get("head", 0), **settings), run(**settings)[0]
    assert len(drawn["X"]) == 3
    for row, letter in enumerate("QKV"):
        given, weight, made = drawn["X"][row], drawn[f"W^{letter}"][0], drawn[letter][0]
        assert shows(given, x)
        assert shows(weight, one[f"w{letter.lower()}"])
        assert shows(made, one[letter.lower()])
        assert row_words(figure, given) == WORDS
        middles = [(cells.top + cells.bottom) / 2 for cells in (given, weight, made)]
        assert np.allclose(middles, middles[0])
        assert given.right < weight.left < weight.right < made.left
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


@pytest.mark.parametrize("heads", [(0, 1), (6, 3)])
def test_f37_two_heads(heads):
    drawn = named(picture("F37", heads=heads))
    assert shows(drawn["X"][0], run()[0])
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
    with pytest.raises(UserError, match=r"heads 0 \.\. 7"):
        picture("F37", heads=(0, 8))
    with pytest.raises(UserError, match="name two heads"):
        picture("F37", heads=(0,))


@pytest.mark.parametrize("n_heads", [8, 3])
def test_f38_eight_outputs(n_heads):
    figure = picture("F38", n_heads=n_heads)
    drawn = named(figure)
    x, _, _, cache = run(n_heads=n_heads)
    assert shows(drawn["X"][0], x)
    assert {name for name in drawn if name.startswith("Z")} == {f"Z_{i}" for i in range(n_heads)}
    for number in range(n_heads):
        z = cache.attention.weights[0, number] @ cache.attention.v[0, number]
        assert shows(drawn[f"Z_{number}"][0], z)
    assert f"head #{n_heads - 1}" in [text for text, _, _ in texts(figure)]


@pytest.mark.parametrize("n_heads", [8, 2])
def test_f39_joined_heads(n_heads):
    figure = picture("F39", n_heads=n_heads)
    drawn = named(figure)
    _, layer, z, cache = run(n_heads=n_heads)
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
    all_texts = [text for text, _, _ in texts(figure)]
    assert f"2 × {3 * n_heads}" in all_texts
    assert f"{3 * n_heads} × 4" in all_texts


@pytest.mark.parametrize(("n_heads", "shown"), [(8, (0, 1, 7)), (2, (0, 1))])
def test_f40_recap(n_heads, shown):
    figure = picture("F40", n_heads=n_heads)
    drawn = named(figure)
    x, layer, z, _ = run(n_heads=n_heads)
    assert shows(drawn["X"][0], x, 1)
    assert shows(drawn["Z"][0], z, 1)
    assert shows(drawn["R"][0], encoder_output(n_heads), 1)
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
    all_texts = "\n".join(text for text, _, _ in texts(figure))
    assert all(f"{step}  " in all_texts for step in range(1, 6))
    assert "Thinking Machines" in all_texts


def encoder_output(n_heads):
    rng = np.random.default_rng(SEED)
    embed = InputEmbedding(2, 4, 2, positions="none", rng=rng, dtype=np.float64)
    x, _ = embed.forward(np.arange(2)[None])
    sizes = {"d_model": 4, "n_heads": n_heads, "d_head": 3, "d_ff": 8}
    config = TransformerConfig(**sizes, attention_bias=False, positions="none", dropout=0.0)
    return EncoderLayer(config, rng=rng, dtype=np.float64).forward(x)[0][0]


# One word's attention, step by step.


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


@pytest.mark.parametrize("id", ["F31", "F35", "F36", "F37", "F38", "F39", "F40"])
@pytest.mark.parametrize(
    "changes", [{"sentence": "le chat dort"}, {"sentence": "mot"}, {"d_model": 2}, {"seed": 1}]
)
def test_changed_pictures_are_legible_too(id, changes):
    assert text_problems(picture(id, **changes)) == []


@pytest.mark.parametrize("id", ["F31", "F35", "F36"])
def test_a_head_that_does_not_exist(id):
    with pytest.raises(UserError, match=r"heads 0 \.\. 7"):
        picture(id, head=8)
