"""Tests of bars of probabilities and of scores."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.plots import probability_bars, probability_panels, score_bars, text_problems
from npformer.plots.layout import new_figure

FEW = ["a", "am", "I", "thanks", "étudiant", "<eos>"]


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_bars_are_as_long_as_the_probabilities():
    model, target = np.array([0.2, 0.2, 0.1, 0.2, 0.2, 0.1]), np.eye(6)[3]
    figure = probability_bars(model, FEW, target=target, names=("untrained", "one-hot"), title="merci")
    ax = figure.axes[0]
    first, second = ax.containers
    assert [bar.get_width() for bar in first] == model.tolist()
    assert [bar.get_width() for bar in second] == target.tolist()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == FEW
    for place, bar, other in zip(ax.get_yticks(), first, second, strict=True):
        middle = (bar.get_y() + other.get_y() + other.get_height()) / 2
        assert middle == pytest.approx(place)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first word is at the top
    assert sorted(texts(ax)) == sorted([".20", ".20", ".10", ".20", ".20", ".10", "1.00", *[".00"] * 5])
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["untrained", "one-hot"]
    assert text_problems(figure) == []


@pytest.mark.parametrize(
    "draw",
    [
        lambda: probability_bars(np.ones(99) / 99, ["a"] * 99),
        lambda: probability_bars([2.0, -1.0], ["a", "b"]),
        lambda: probability_bars([np.nan], ["a"]),
        lambda: probability_bars([1.0], ["a"], decimals=-1),
        lambda: probability_bars([1.0], 3),
        lambda: probability_bars([1.0], ["a"], target=[0.5, 0.5]),
        lambda: probability_panels(np.eye(40), ["a"] * 40),
        lambda: probability_bars(np.ones(9) / 9, ["a"] * 9, ax=new_figure(3, 1).add_axes((0.1, 0, 0.8, 0.8))),
    ],
)
def test_bars_that_cannot_be_drawn(draw):
    with pytest.raises(UserError):
        draw()


# Scores


def bars_of(ax):
    return [(bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in ax.patches]


def test_scores_go_to_both_sides_of_zero():
    figure = score_bars([[1.5, -0.5, 0.0]], [["a", "b", "c"]], title="of a word")
    (ax,) = figure.axes
    assert [width for width, _ in bars_of(ax)] == [1.5, -0.5, 0.0]
    assert [round(y) for _, y in bars_of(ax)] == [0, 1, 2]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    assert [text.get_text() for text in ax.texts] == ["1.50", "−.50", ".00"]
    colours = [bar.get_facecolor() for bar in ax.patches]
    assert colours[0] != colours[1]
    assert text_problems(figure) == []


@pytest.mark.parametrize(
    ("scores", "words", "message"),
    [
        ([[1.0, np.nan]], [["a", "b"]], "scores must be finite"),
        ([[1.0]], [["a", "b"]], "words has 2 labels: give 1"),
        ([[1.0]], [["a"], ["b"]], "words has 2 lists for 1 panel: give one for each panel"),
        ([], [], "words has 0 lists for 0 panels"),
        ([[[1.0]]], [["a"]], r"scores has shape \(1, 1\)"),
    ],
)
def test_scores_that_cannot_be_drawn(scores, words, message):
    with pytest.raises(UserError, match=message):
        score_bars(scores, words)
