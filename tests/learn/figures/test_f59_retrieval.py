"""Tests of F59: the scores and weights of retrieval."""

import numpy as np
from figure_cells import draw
from matplotlib.text import Text

from npformer.learn.figures.f59_retrieval import TITLES, retrieve
from npformer.plots import text_problems


def test_scores_count_shared_words_and_weights_are_their_softmax():
    scores, weights = retrieve("how does attention work", TITLES)
    assert scores.tolist() == [1, 3, 0, 0]
    np.testing.assert_allclose(weights, np.exp(scores) / np.exp(scores).sum(), atol=1e-15)


def test_a_query_and_titles_are_no_formulas():
    figure = draw("F59", query="$x$ or $y", titles=["$\\nonsense$", "x $x$"]).figure
    assert text_problems(figure) == []
    drawn = {text.get_text() for text in figure.findobj(Text)}
    assert {r"\$x\$ or \$y", r"\$\nonsense\$", r"x \$x\$"} <= drawn
