"""Tests of heat maps: they show the given numbers, rows are queries, and all text is legible."""

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.image import AxesImage

from npformer.errors import UserError
from npformer.functional.masks import causal_mask
from npformer.plots import (
    attention_grid,
    attention_map,
    mask_map,
    score_map,
    softmax_panels,
    text_problems,
    value_map,
)
from npformer.plots.layout import new_figure
from npformer.plots.palette import COLOURS
from npformer.plots.style import number

FRENCH = ["L'", "été", ",", "l'", "élève", "a", "déjà", "préféré"]
ENGLISH = ["In", "summer", "the", "pupil", "preferred", "it"]


def random_weights(*shape):
    x = np.exp(2 * np.random.default_rng(0).standard_normal(shape))
    return x / x.sum(-1, keepdims=True)


def images(figure):
    return [image for ax in figure.axes for image in ax.images if isinstance(image, AxesImage)]


def texts(ax):
    return [t.get_text() for t in ax.texts]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_rows_are_queries_and_columns_keys():
    weights = random_weights(8, 6)
    before = weights.copy()
    figure = attention_map(weights, FRENCH, ENGLISH, title="A head")
    (image,) = images(figure)
    ax = image.axes
    assert np.array_equal(image.get_array(), weights)
    assert ticks(ax.yaxis) == FRENCH
    assert ticks(ax.xaxis) == ENGLISH
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query", "key")
    low, high = ax.get_ylim()
    assert low > high  # the first query is at the top
    assert image.norm.vmin == 0
    assert image.norm.vmax == weights.max()
    weights[:] = 0  # the picture has a copy of its own
    assert np.array_equal(image.get_array(), before)
    assert text_problems(figure) == []


def test_numbers_are_in_their_cells():
    weights = random_weights(3, 4)
    figure = attention_map(weights, None, None, numbers=True)
    ax = images(figure)[0].axes
    labels = {tuple(t.get_position()): t.get_text() for t in ax.texts}
    assert labels == {(j, i): number(weights[i, j]) for i in range(3) for j in range(4)}


def test_masked_cells_are_dark_grey_and_have_no_number():
    weights = random_weights(4, 4)
    mask = np.tril(np.ones((4, 4), bool))
    figure = attention_map(weights, list("abcd"), list("abcd"), mask=mask[None, None], numbers=True)
    image = images(figure)[0]
    assert np.array_equal(np.ma.getmaskarray(image.get_array()), ~mask)
    drawn = image.to_rgba(image.get_array())
    assert np.allclose(drawn[~mask][:, :3], matplotlib.colors.to_rgb(COLOURS["masked"]))
    assert not np.allclose(drawn[mask][:, :3], matplotlib.colors.to_rgb(COLOURS["masked"]), atol=0.05)
    assert len(image.axes.texts) == 10
    assert image.axes.get_legend().get_texts()[0].get_text() == "masked"
    assert image.norm.vmax == weights[mask].max()


def test_scores_are_white_at_zero_and_minus_infinity_is_masked():
    scores = np.array([[1.0, -4.0], [-np.inf, 0.0]])
    image = images(score_map(scores, list("ab"), list("ab")))[0]
    assert (image.norm.vmin, image.norm.vmax) == (-4, 4)
    assert np.ma.getmaskarray(image.get_array()).tolist() == [[False, False], [True, False]]
    assert min(image.to_rgba(np.zeros(1))[0]) > 0.98
    blue, orange = image.to_rgba(np.array([4.0, -4.0]))
    assert blue[2] > blue[0]
    assert orange[0] > orange[2]


def test_masks():
    mask = causal_mask(4, np.zeros(1))
    figure = mask_map(mask, list("abcd"), list("abcd"), title="causal")
    image = images(figure)[0]
    assert np.array_equal(image.get_array().data.astype(bool), mask)
    drawn = image.to_rgba(image.get_array())[..., :3]
    assert np.allclose(drawn[~mask], matplotlib.colors.to_rgb(COLOURS["masked"]))
    assert drawn[mask].min() > 0.7
    padding = np.array([[True, True, False]])
    shown = images(mask_map(padding, list("ab"), list("cde")))[0].get_array()
    assert shown.astype(bool).tolist() == [[True, True, False]] * 2
    assert images(mask_map(padding[0], None, None))[0].get_array().shape == (1, 3)


def test_before_and_after_the_softmax():
    scores = np.random.default_rng(0).standard_normal((5, 5))
    mask = causal_mask(5, scores)
    figure = softmax_panels(
        scores, random_weights(5, 5), FRENCH[:5], FRENCH[:5], mask=mask, numbers=True, title="t"
    )
    before, after = images(figure)
    assert np.array_equal(before.get_array().data, scores)
    assert np.array_equal(after.get_array().data, random_weights(5, 5))
    assert before.axes.get_position().y0 == pytest.approx(after.axes.get_position().y0)
    assert before.axes.get_position().x1 < after.axes.get_position().x0
    assert text_problems(figure) == []


def test_given_axes_are_drawn_on():
    figure = new_figure(6, 4)
    left, right = figure.add_axes((0.15, 0.1, 0.35, 0.6)), figure.add_axes((0.6, 0.1, 0.35, 0.6))
    assert attention_map(random_weights(3, 3), list("abc"), list("abc"), ax=right, title="right") is figure
    assert (len(left.images), len(right.images), len(figure.axes)) == (0, 1, 2)
    assert right.get_title() == "right"
    mask_map(np.eye(3, dtype=bool), list("abc"), list("abc"), ax=left)
    assert len(left.images) == 1
    assert text_problems(figure) == []
    with pytest.raises(UserError, match="do not fit"):
        attention_map(random_weights(40, 40), ["word"] * 40, ["word"] * 40, ax=left)
    inside = new_figure(8, 4).subfigures(1, 2)[1].add_axes((0.2, 0.1, 0.6, 0.6))
    assert attention_map(np.eye(2), list("ab"), list("ab"), ax=inside).get_size_inches()[0] == 8


SENTENCES = {
    "one": ["mot"],
    "two long": ["anticonstitutionnellement", "Donaudampfschifffahrtsgesellschaft"],
    "accents": FRENCH,
    "signs": ["$5", "and", "$6", "a_b^c", " ", "", "<s>", "\\alpha", "%", "‘’"],
    "forty": [f"mot-à-mot{i}" for i in range(40)],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_difficult_sentences_are_legible(name):
    words = SENTENCES[name]
    n = len(words)
    weights = random_weights(n, n)
    mask = causal_mask(n, weights)
    for figure in (
        attention_map(weights, words, words, mask=mask, title="A title that is longer than one word of it"),
        mask_map(mask, words, words),
        attention_grid(random_weights(2, 3, n, n), words, words, mask=mask),
    ):
        assert text_problems(figure) == []


@pytest.mark.parametrize("n", [2, 9, 27])
def test_numbers_of_every_length_are_legible(n):
    words = (FRENCH * 4)[:n]
    assert text_problems(attention_map(random_weights(n, n), words, words, numbers=True)) == []


def nan_at(row, column):
    weights = random_weights(2, 3)
    weights[row, column] = np.nan
    return weights


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda: attention_map(random_weights(2, 3), ["a"], None), "queries has 1 label:"),
        (lambda: attention_map(random_weights(3, 2), list("ab"), list("abc")), "queries has 2 labels"),
        (lambda: attention_map(random_weights(2, 3), "ab", None), "a single string"),
        (lambda: attention_map(random_weights(1, 2, 3), None, None), "2 axes"),
        (lambda: attention_map(nan_at(1, 2), None, None), r"weights\[1, 2\] is nan"),
        (lambda: attention_map(np.ones((99, 99)), ["word"] * 99, ["word"] * 99), "99 × 99 words does not"),
        (lambda: attention_grid(random_weights(2, 3), None, None), "4 axes"),
        (lambda: attention_grid(random_weights(1, 2, 2, 2), None, None, large=(1, 0)), "large is"),
        (lambda: attention_grid(random_weights(2, 60, 3, 3), None, None), "draw fewer"),
        (lambda: value_map(np.full((2, 2), -np.inf), xlabel="x", ylabel="y"), "finite"),
    ],
)
def test_wrong_inputs_are_refused(draw, sentence):
    with pytest.raises(UserError, match=sentence):
        draw()


def test_the_grid_has_a_panel_for_every_layer_and_head():
    weights = random_weights(2, 3, 6, 4)
    figure = attention_grid(weights, FRENCH[:6], ENGLISH[:4], large=(1, 2), title="all")
    *panels, one = images(figure)
    panels = [p for p in [*panels, one] if p.get_array().shape == (6, 4)]
    assert len(panels) == 7
    places = [p.axes.get_position() for p in panels[:6]]
    for index, (panel, place) in enumerate(zip(panels[:6], places, strict=True)):
        i, j = divmod(index, 3)
        assert np.array_equal(panel.get_array(), weights[i, j])
        assert panel.norm.vmax == weights.max()
        assert place.x0 == pytest.approx(places[j].x0)  # heads go to the right
        assert place.y0 == pytest.approx(places[3 * i].y0)  # layers go down
    assert places[0].x0 < places[1].x0
    assert places[0].y0 > places[3].y0
    assert np.array_equal(panels[6].get_array(), weights[1, 2])
    assert panels[6].axes.get_title() == "layer 1, head 2"
    assert ticks(panels[0].axes.yaxis) == FRENCH[:6]
    assert ticks(panels[0].axes.xaxis) == ENGLISH[:4]
    assert ticks(panels[4].axes.yaxis) == []
    assert text_problems(figure) == []


def test_the_panels_of_thirty_words_are_large_beside_a_large_map():
    """Check that the large map stands below the grid if the panels would be smaller beside it."""
    words = [f"wörd{i}" for i in range(30)]
    figure = attention_grid(random_weights(3, 8, 30, 30), words, words, large=(0, 1))
    *panels, one = [p.axes.get_window_extent() for p in images(figure) if p.get_array().shape == (30, 30)]
    assert len(panels) == 3 * 8
    assert min(panel.width for panel in panels) / figure.dpi > 1.2
    assert one.y1 < min(panel.y0 for panel in panels)
    assert text_problems(figure) == []


def test_value_map():
    values = np.random.default_rng(0).standard_normal((20, 512))
    figure = value_map(values, xlabel="embedding dimension", ylabel="token position", title="positions")
    image = images(figure)[0]
    assert np.array_equal(image.get_array(), values)
    assert (image.axes.get_xlabel(), image.axes.get_ylabel()) == ("embedding dimension", "token position")
    assert image.norm.vmax == -image.norm.vmin == np.abs(values).max()
    assert text_problems(figure) == []
