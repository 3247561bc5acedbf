"""Tests of F13 to F16: scores and masks as heat maps."""

import numpy as np
import pytest
from figures_jianshu_oracle import LATER, WORDS, softmax, story
from figures_jianshu_reading import heat, same

from npformer.errors import UserError
from npformer.learn.figures import draw

OTHER = {"sentence": "the key is old", "seed": 5}


def shown(id, **changes):
    """Return the heat maps of a figure in drawing order. Colour bars are axes without an image."""
    return [heat(ax) for ax in draw(id, **changes).figure.axes if ax.images]


def check(panel, expected):
    """Check colours exactly and numbers to two decimals. NaN is dark grey and has no number."""
    colours, written, _, _ = panel
    np.testing.assert_allclose(colours, expected, rtol=1e-5, atol=1e-6)
    same(written, np.where(np.isnan(expected), np.nan, expected))


@pytest.mark.parametrize("changes", [{}, OTHER])
def test_f13_scores_with_a_query_in_each_row(changes):
    s = story(**changes)
    (panel,) = shown("F13", **changes)
    check(panel, s.scores)
    if not changes:
        assert panel[2:] == (WORDS, WORDS)
    assert not np.allclose(s.scores, s.scores.T), "a transposed picture would pass"


@pytest.mark.parametrize("changes", [{}, OTHER])
def test_f14_padding_columns_are_masked(changes):
    s = story(**changes)
    (panel,) = shown("F14", **changes)
    check(panel, np.where(s.pad, np.nan, s.scores))


@pytest.mark.parametrize("changes", [{}, OTHER])
def test_f15_the_strict_upper_triangle_is_masked_too(changes):
    s = story(**changes)
    (panel,) = shown("F15", **changes)
    check(panel, np.where(s.pad | LATER, np.nan, s.scores))
    assert np.isfinite(np.diag(panel[0])[:5]).all()


@pytest.mark.parametrize("changes", [{}, OTHER])
def test_f16_three_panels_of_the_encoder_are_above_three_of_the_decoder(changes):
    panels = shown("F16", **changes)
    assert len(panels) == 6
    for row, causal in enumerate((False, True)):
        s = story(**changes, causal=causal)
        scores, uniform, weights = panels[3 * row : 3 * row + 3]
        queries = s.pad[:, None]
        check(scores, np.where(queries, 0, np.where(s.may, s.scores, np.nan)))
        before = np.where(queries, 1 / 7, softmax(s.scores, s.may))
        check(uniform, np.where(s.may | queries, before, np.nan))
        check(weights, np.where(s.may, s.weights, np.nan))
        assert (weights[0][s.pad][:, ~s.pad] == 0).sum() == (s.may[s.pad]).sum()


def test_f16_encoder_is_above_decoder_and_all_panels_share_one_colour_scale():
    figure = draw("F16").figure
    names = {t.get_text(): t.get_position()[1] for t in figure.texts}
    assert names["encoder"] > names["decoder"]
    axes = [ax for ax in figure.axes if ax.images]
    assert axes[0].get_position().y0 > axes[3].get_position().y1
    ends = {(ax.images[0].norm.vmin, ax.images[0].norm.vmax) for ax in axes[1:3] + axes[4:]}
    assert ends == {(0.0, 1.0)}


def test_a_shorter_sentence_has_more_dark_columns():
    for id in ("F14", "F15"):
        few, many = (np.isnan(shown(id, sentence=text)[0][0]).sum() for text in ("i am a student", "thanks"))
        assert many > few


def test_invalid_inputs_are_refused_with_one_sentence():
    for changes, match in (
        ({"sentence": ""}, "is empty"),
        ({"length": 0}, "length is 0: it must be a whole number, 1 or more"),
    ):
        for id in ("F10", "F13", "F16", "F19"):
            with pytest.raises(UserError, match=match):
                draw(id, **changes)
