"""Tests of F46 to F48: the most probable word, and the distributions of a model and of the target."""

import math

import numpy as np
import pytest
from figure_cells import draw, grids, picture, places, row_words, shows, texts

from npformer.functional import softmax
from npformer.nn import Linear
from npformer.plots import text_problems

WORDS = ["a", "am", "I", "thanks", "student", "<eos>"]
UNTRAINED = [0.2, 0.2, 0.1, 0.2, 0.2, 0.1]


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
    assert {f"argmax {id}: “{word}”", "probabilities"} <= set(texts(figure))
    ids = [text for text, _, y in places(figure) if text.isdigit() and y > 3]
    assert ids == list("012345")  # the axis ends at vocab_size - 1
    rings = [p for p in figure.axes[0].patches if type(p).__name__ == "Rectangle"]
    step = (drawn[2].right - drawn[2].left) / 6
    assert {round((ring.get_x() - drawn[2].left) / step) for ring in rings} == {id}
    (at,) = [x for text, x, _ in places(figure) if text.startswith("argmax")]
    assert at == pytest.approx(drawn[2].left + (id + 0.5) * step)
    assert f"{output(id)[2][id]:.2f}"[1:] in draw("F46", word=word).caption


def bars(figure):
    """Return the lengths of the model's bars and of the target's bars."""
    return [[bar.get_width() for bar in container] for container in figure.axes[0].containers]


@pytest.mark.parametrize(
    ("changes", "target"),
    [
        ({}, [0, 0, 0, 1, 0, 0]),
        ({"target": "am"}, [0, 1, 0, 0, 0, 0]),
        ({"smoothing": 0.1}, [0.1 / 6] * 3 + [0.9 + 0.1 / 6] + [0.1 / 6] * 2),
    ],
)
def test_f47_bars(changes, target):
    figure = draw("F47", **changes).figure
    model, target_bars = bars(figure)
    assert model == pytest.approx(UNTRAINED)
    assert target_bars == pytest.approx(target)
    ax = figure.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == WORDS
    faces = {bar.get_facecolor() for bar in ax.containers[0]}
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["the untrained model", "the target"]
    assert len(faces) == 1  # four words have the same probability, so none is marked
    labels = [(round(t.get_position()[1]), t.get_text()) for t in ax.texts]
    for place, value in [*enumerate(model), *enumerate(target_bars)]:
        assert (place, f"{value:.2f}".removeprefix("0")) in labels
    assert text_problems(figure) == []


@pytest.mark.parametrize(
    "changes", [{}, {"target": "am"}, {"probabilities": (0.05, 0.05, 0.1, 0.6, 0.1, 0.1)}, {"smoothing": 0.1}]
)
def test_f47_losses(changes):
    caption = draw("F47", **changes).caption
    p = np.array(changes.get("probabilities", UNTRAINED))
    smoothing = changes.get("smoothing", 0)
    q = np.full(6, smoothing / 6)
    q[WORDS.index(changes.get("target", "thanks"))] += 1 - smoothing
    entropy = -(q * np.log(p)).sum()
    divergence = sum(b * math.log(b / a) for a, b in zip(p, q, strict=True) if b)
    assert f"L2 distance {math.sqrt(((p - q) ** 2).sum()):.4f}" in caption
    assert f"{entropy:.4f}" in caption
    assert f"KL divergence {divergence:.4f}" in caption


def test_f47_numbers_of_the_document():
    caption = draw("F47").caption
    assert "L2 distance 0.8832" in caption
    assert "cross-entropy and KL divergence 1.6094" in caption
    smoothed = draw("F47", smoothing=0.1).caption
    assert "cross-entropy 1.6325, KL divergence 1.2116" in smoothed


@pytest.mark.parametrize(
    ("sentence", "ids"), [("i am a student <eos>", [2, 1, 0, 4, 5]), ("thanks I am <eos>", [3, 2, 1, 5])]
)
def test_f48_targets(sentence, ids):
    drawing = draw("F48", sentence=sentence)
    figure = drawing.figure
    (cells,) = grids(figure)
    assert np.array_equal(cells.values, np.eye(6)[ids])
    words = sentence.split()
    assert row_words(figure, cells) == [f"position #{i}: {word}" for i, word in enumerate(words, 1)]
    above = sorted((x, text) for text, x, y in places(figure) if text in WORDS and y > cells.top)
    assert [text for _, text in above] == WORDS
    bold = [t for t in figure.axes[0].texts if t.get_weight() == "bold"]
    heights = [t.get_position()[1] for t in bold]
    assert heights == sorted(heights, reverse=True)
    assert [int(t.get_text()) for t in bold] == ids
    full = cells.faces[np.arange(len(ids)), ids]  # the cell of a 1 has the colour, the others are pale
    assert (full.sum(-1) < 2.6).all()
    assert (np.delete(cells.faces[0], ids[0], 0).sum(-1) > 2.9).all()
    assert ", ".join(map(str, ids)) in drawing.caption


def test_f48_with_label_smoothing():
    drawing = draw("F48", smoothing=0.3)
    (cells,) = grids(drawing.figure)
    assert np.allclose(cells.values.sum(1), 1, atol=0.01)
    assert np.allclose(cells.values.max(1), 0.75)
    assert np.allclose(cells.values.min(1), 0.05)
    assert ".75 on the right word and .05" in drawing.caption
    assert text_problems(drawing.figure) == []
