"""Tests of F59: the scores and weights of retrieval."""

import numpy as np
import pytest
from figure_boxes import shapes, touching
from figure_cells import draw, texts
from matplotlib.text import Text

from npformer.functional import softmax
from npformer.learn.figures.f59_retrieval import TITLES, retrieve
from npformer.plots import text_problems
from npformer.plots.style import number


def test_scores_count_shared_words_and_weights_are_their_softmax():
    scores, weights = retrieve("how does attention work", TITLES)
    assert scores.tolist() == [1, 3, 0, 0]
    np.testing.assert_allclose(weights, np.exp(scores) / np.exp(scores).sum(), atol=1e-15)


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("how does attention work", TITLES),
        ("cats", ["funny cats", "dogs", "cats and more cats", "soup"]),
        ("soup", ["soup", "winter"]),
    ],
)
def test_retrieval_draws_these_weights(query, titles):
    drawing = draw("F59", query=query, titles=titles)
    figure = drawing.figure
    scores = np.array([sum(query.split().count(w) for w in title.split()) for title in titles], float)
    weights, _ = softmax(scores)
    names = [s.label for s in shapes(figure)]
    assert query in names
    assert set(titles) <= set(names)
    for title, score, weight in zip(titles, scores, weights, strict=True):
        assert f"{score:.0f} → {number(weight)}" in texts(figure)
        key = next(s for s in shapes(figure) if s.label == title and s.x > 0)
        (into,), (out,) = touching(figure, key, end=True), touching(figure, key, end=False)
        assert into.width == pytest.approx(0.8 + 5 * weight)
        assert out.width == pytest.approx(0.8 + 5 * weight)
        value = next(s for s in shapes(figure) if s.on_edge(out.end))
        assert value.label == f"video {list(titles).index(title) + 1}"
        assert value.y == pytest.approx(key.y)
    answer = "\n+ ".join(f"{number(w)} video {i + 1}" for i, w in enumerate(weights))
    assert answer in names
    assert titles[int(np.argmax(scores))] in drawing.caption
    assert text_problems(figure) == []


def test_a_query_and_titles_are_no_formulas():
    figure = draw("F59", query="$x$ or $y", titles=["$\\nonsense$", "x $x$"]).figure
    assert text_problems(figure) == []
    drawn = {text.get_text() for text in figure.findobj(Text)}
    assert {r"\$x\$ or \$y", r"\$\nonsense\$", r"x \$x\$"} <= drawn
