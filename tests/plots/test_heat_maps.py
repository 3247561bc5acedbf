"""Tests of heat maps: they show the given numbers, rows are queries, and all text is legible."""

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.image import AxesImage

from npformer.errors import UserError
from npformer.plots import (
    Curve,
    Panel,
    attention,
    attention_grid,
    attention_map,
    curve_page,
    curves,
    image_attention,
    mask_map,
    score_bars,
    text_problems,
    value_map,
)
from npformer.plots.layout import axes_at, new_figure
from npformer.plots.lens_maps import patch_grid, prediction_grid
from npformer.plots.masks import mask_panels
from npformer.plots.palette import COLOURS

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
        (
            lambda: attention_grid(random_weights(1, 2, 2, 2), None, None, large=(1, 0)),
            "layer is 1: there is 1",
        ),
        (lambda: attention_grid(random_weights(1, 2, 2, 2), None, None, large=("a", 1)), "layer is 'a'"),
        (lambda: attention_grid(random_weights(1, 2, 2, 2), None, None, large=3), "large is 3: give a layer"),
        (lambda: prediction_grid([[0.5, 0.5]], [["a"]], ["r"], ["x", "y"]), r"must have the shape \(1, 2\)"),
        (
            lambda: prediction_grid([[0.5], [np.nan]], [["a"], ["b"]], ["r", "s"], ["x"]),
            r"probabilities\[1, 0\] is nan",
        ),
        (lambda: patch_grid([[("", [[-np.inf]], ["r"], ["c"])]]), r"effects\[0, 0\] is -inf"),
        (lambda: patch_grid([[], [("", [[1]], ["r"], ["c"])]]), "there are no effects"),
        (lambda: attention_grid(nan_at(1, 2)[None, None], None, None), r"weights\[0, 0, 1, 2\] is nan"),
        (lambda: attention_map(random_weights(2, 3), None, None, largest=-1), "largest is -1: give a number"),
        (lambda: mask_map([[True], [True, False]], None, None), "rows of different lengths"),
        (lambda: patch_grid([]), "there are no effects: give at least one"),
        (lambda: mask_panels({}, ["a"], ["a"]), "there are no masks: give at least one"),
        (lambda: attention_grid(random_weights(2, 60, 3, 3), None, None), "draw fewer"),
        (lambda: value_map(np.full((2, 2), -np.inf), xlabel="x", ylabel="y"), "finite"),
    ],
)
def test_wrong_inputs_are_refused(draw, sentence):
    with pytest.raises(UserError, match=sentence):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: attention_map([[1.0]], None, None),
        lambda: attention_grid(np.ones((1, 1, 1, 1)), ["a"], ["a"], large=(0, 0)),
        lambda: attention_grid(random_weights(4, 2, 1, 60), None, None),
        lambda: attention(np.full((128, 2, 5, 5), 0.2)[:, None], layer=127),
        lambda: mask_map([[True]], None, None, title="a " * 30, ax=axes_at(new_figure(4, 5), 1, 1, 2, 2)),
        lambda: image_attention(np.ones((60, 6, 3)), np.ones((2, 5, 1)), title="longer than the picture"),
        lambda: curves([1, 2], [0, 100_000]),
        lambda: curve_page([Panel("loss", [Curve([0, 2000], [1, 2])])]),
        lambda: curve_page([Panel("the loss of the validation text " * 3, [Curve([0, 1], [1, 2])])] * 2),
        lambda: score_bars([[1.0, 2.0]] * 2, [["a", "b"]] * 2, ["the length of a gradient " * 4] * 2),
    ],
)  # fmt: skip
def test_difficult_pictures_are_legible(draw):
    assert text_problems(draw()) == []


def test_the_colour_bar_ends_at_the_scale_and_masked_layers_have_a_legend():
    bar = value_map(np.array([[3e-14, -1e-14]]), xlabel="", ylabel="").axes[1]
    assert bar.get_ylim() == pytest.approx((-3e-14, 3e-14), abs=1e-20)
    masks = np.stack([np.ones((2, 2), bool), np.eye(2, dtype=bool)])
    *_, bar = attention_grid(random_weights(2, 1, 2, 2), None, None, mask=masks).axes
    assert bar.get_legend().get_texts()[0].get_text() == "masked"


def test_invisible_predictions_have_signs():
    figure = prediction_grid([[0.5, 0.5, 0.5]], [[" ", "\n", "$"]], ["r"], list("abc"))
    assert texts(figure.axes[0]) == ["␣", "↵", "$"]


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
