"""Tests of F22, F23, F27, F28, F42, F46 and F58, compared with layers that the test runs itself."""

import numpy as np
import pytest
from datawhale_cells import grids, named, row_words, shows, texts

from npformer.errors import UserError
from npformer.functional import softmax
from npformer.functional.attention import attention
from npformer.learn.figures import Studio, all_entries, draw
from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.nn import InputEmbedding, Linear
from npformer.plots import save, text_problems

MINE = [
    "F22",
    "F23",
    "F24",
    "F25",
    "F26",
    "F27",
    "F28",
    "F31",
    "F32",
    "F33",
    "F34",
    "F35",
    "F36",
    "F37",
    "F38",
    "F39",
    "F40",
    "F42",
    "F46",
    "F47",
    "F48",
    "F58",
]
SEED = 2
STUDIO = Studio(folder="no-model-is-needed")


def picture(id, **changes):
    return draw(id, STUDIO, **changes).figure


def embedding(ids, *, seed=SEED, positions="interleaved"):
    """Return (words, positions, sum), each (T, 4), of a layer like the one in the figures."""
    layer = InputEmbedding(
        len(ids), 4, len(ids), positions=positions, rng=np.random.default_rng(seed), dtype=np.float64
    )
    _, cache = layer.forward(np.array([ids]))
    x, _ = layer.tokens.forward(np.array([ids]))
    t = layer.positions.forward(len(ids))[0] if layer.positions else 0 * x[0]
    return x[0], t, cache.y[0]


def encoder(n_tokens, seed=SEED):
    """Return (x, z, LayerNorm(x + z), r) of an encoder layer with the sizes of the example."""
    rng = np.random.default_rng(seed)
    embed = InputEmbedding(n_tokens, 4, n_tokens, positions="none", rng=rng, dtype=np.float64)
    x, _ = embed.forward(np.arange(n_tokens)[None])
    config = TransformerConfig(
        d_model=4, n_heads=8, d_head=3, d_ff=8, attention_bias=False, positions="none", dropout=0.0
    )
    layer = EncoderLayer(config, rng=rng, dtype=np.float64)
    z, _ = layer.self_attention.forward(x)
    normalised, _ = layer.self_residual.norm.forward(x, z)
    made, _ = layer.feed_forward.forward(normalised)
    r, _ = layer.feed_forward_residual.norm.forward(normalised, made)
    return x[0], z[0], normalised[0], r[0]


@pytest.mark.parametrize("id", MINE)
def test_every_figure_is_legible_and_reproducible(id, tmp_path):
    first, second = draw(id, STUDIO), draw(id, STUDIO)
    assert text_problems(first.figure) == []
    assert first.caption == second.caption
    assert 40 < len(first.caption) < 420
    a, b = (save(d.figure, tmp_path / f"{i}.png").read_bytes() for i, d in enumerate((first, second)))
    assert a == b


def test_no_model_was_trained_and_all_are_registered():
    assert not STUDIO.folder.exists()
    entries = {entry.id: entry for entry in all_entries()}
    assert set(MINE) <= set(entries)
    assert {entries[id].source for id in MINE} == {"datawhale", "paperspace"}


def as_text(values):
    """Return a vector as captions write it."""
    return "[" + "  ".join(f"{v:.2f}".replace("0.", ".", 1).replace("-", "−") for v in values) + "]"


def test_captions_quote_the_numbers():
    x, z, normalised, r = encoder(2)
    caption = draw("F28", STUDIO).caption
    assert as_text(r[0]) in caption
    caption = draw("F42", STUDIO).caption
    assert f"becomes {as_text(normalised[0, :1])[1:-1]}" in caption
    assert f"{as_text(x[0, :1])[1:-1]} + ({as_text(z[0, :1])[1:-1]})" in caption
    assert as_text(embedding([0, 1, 2])[2][0]) in draw("F23", STUDIO).caption
    assert f"{output()[2][1]:.2f}"[1:] in draw("F46", STUDIO).caption


def test_f22_words_as_vectors():
    figure = picture("F22")
    x, _, _ = embedding([0, 1, 2])
    drawn = named(figure)
    assert all(shows(drawn[f"x_{i + 1}"][0], x[i]) for i in range(3))
    at = {text: place for text, place, _ in texts(figure)}
    for i, word in enumerate(["Je", "suis", "étudiant"]):
        cells = drawn[f"x_{i + 1}"][0]
        assert cells.left < at[word] < cells.right
    other, _, _ = embedding([0, 1, 0], seed=5)
    drawn = named(picture("F22", sentence="non et non", seed=5))
    assert all(shows(drawn[f"x_{i + 1}"][0], other[i]) for i in range(3))
    assert not shows(drawn["x_1"][0], x[0])


@pytest.mark.parametrize("positions", ["interleaved", "halves"])
def test_f23_time_signal(positions):
    figure = picture("F23", positions=positions)
    drawn = named(figure)
    for name, values in zip(("x", "t", "x'"), embedding([0, 1, 2], positions=positions), strict=True):
        assert all(shows(drawn[f"{name}_{i + 1}"][0], values[i]) for i in range(3)), name
    for i in "123":  # the sum above the time signal above the word, in one column
        column = [drawn[f"{name}_{i}"][0] for name in ("x'", "t", "x")]
        assert [c.top for c in column] == sorted((c.top for c in column), reverse=True)
        assert {round(c.left, 6) for c in column} == {round(column[0].left, 6)}
    assert {"encoder #0", "encoder #1", "+", "="} <= {text for text, _, _ in texts(figure)}


@pytest.mark.parametrize(("id", "words"), [("F27", 3), ("F28", 2)])
def test_f27_f28_one_encoder(id, words):
    figure = picture(id)
    x, z, normalised, r = encoder(words)
    drawn = named(figure)
    for name, values in (("x", x), ("z", normalised), ("r", r)):
        assert all(shows(drawn[f"{name}_{i + 1}"][0], values[i]) for i in range(words)), name
    assert not shows(drawn["z_1"][0], z[0])
    assert drawn["x_1"][0].top < drawn["z_1"][0].bottom < drawn["z_1"][0].top < drawn["r_1"][0].bottom
    boxes = [text for text, _, _ in texts(figure)]
    assert boxes.count("self-attention") == 1
    assert boxes.count("feed-forward") == (1 if id == "F27" else 2)
    changed = named(picture(id, seed=3))
    assert all(shows(changed[f"r_{i + 1}"][0], encoder(words, seed=3)[3][i]) for i in range(words))
    assert not shows(changed["r_1"][0], r[0])


def test_f42_add_and_norm():
    figure = picture("F42")
    x, z, normalised, _ = encoder(2)
    drawn = named(figure)
    assert len(drawn["X"]) == 2
    assert all(shows(cells, x) for cells in drawn["X"])
    assert shows(drawn["Z"][0], z)
    above = max(grids(figure), key=lambda cells: cells.top)
    assert shows(above, normalised)
    assert row_words(figure, above) == ["Thinking", "Machines"]
    assert np.allclose(above.values.mean(1), 0, atol=0.01)
    assert np.allclose(above.values.var(1), 1, atol=0.03)
    other = named(picture("F42", sentence="le chat dort"))
    assert shows(other["Z"][0], encoder(3)[1])


def output(word=1, seed=0, d_model=8):
    rng = np.random.default_rng(seed)
    layer = Linear(d_model, 6, bias=False, rng=rng, dtype=np.float64)
    x = 2.5 * layer.weight.value[:, word] + 0.2 * rng.standard_normal(d_model)
    logits, _ = layer.forward(x)
    return x, logits, softmax(logits)[0]


@pytest.mark.parametrize(("word", "id"), [("am", 1), ("thanks", 3)])
def test_f46_vector_to_word(word, id):
    figure = picture("F46", word=word)
    drawn = sorted(grids(figure), key=lambda cells: cells.top)
    assert all(shows(cells, values) for cells, values in zip(drawn, output(id), strict=True))
    assert output(id)[2].argmax() == id
    all_texts = [text for text, _, _ in texts(figure)]
    assert f"argmax {id}: “{word}”" in all_texts
    assert "probabilities" in all_texts
    ids = [text for text, _, y in texts(figure) if text.isdigit() and y > 3]
    assert ids == list("012345")  # the axis ends at vocab_size - 1
    rings = [p for p in figure.axes[0].patches if type(p).__name__ == "Rectangle"]
    step = (drawn[2].right - drawn[2].left) / 6
    assert {round((ring.get_x() - drawn[2].left) / step) for ring in rings} == {id}
    (at,) = [x for text, x, _ in texts(figure) if text.startswith("argmax")]
    assert at == pytest.approx(drawn[2].left + (id + 0.5) * step)
    with pytest.raises(UserError, match="not in the vocabulary"):
        picture("F46", word="merci")


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
    beside = sorted((px, text) for text, px, py in texts(figure) if abs(py - 0.66) < 1e-6 and text != "×")
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


@pytest.mark.parametrize(
    ("id", "changes", "match"),
    [
        ("F22", {"sentence": " "}, "at least one word"),
        ("F22", {"d_model": 0}, "d_model is 0"),
        ("F22", {"seed": -1}, "whole number, 0 or more"),
        ("F22", {"sentence": "un " * 30}, "does not fit"),
        ("F27", {"n_heads": 0}, "n_heads is 0"),
        ("F58", {"query": 5}, "words 0 .. 4"),
    ],
)
def test_invalid_inputs(id, changes, match):
    with pytest.raises(UserError, match=match):
        picture(id, **changes)
