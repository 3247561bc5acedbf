"""Tests of F10 to F17: the matrices and heat maps of one padded sentence in one layer."""

import numpy as np
import pytest
from jianshu_grids import grids, heat, same
from jianshu_oracle import LATER, WORDS, softmax, story

from npformer import functional as F
from npformer.errors import UserError
from npformer.learn.figures import draw
from npformer.nn import AddNorm

OTHER = "the key is old"  # another sentence
OTHER_SEED = {"sentence": OTHER, "seed": 5}


def read(id, **changes):
    """Return the grids of a figure."""
    return grids(draw(id, **changes).figure)


def oracle(changes):
    names = {"d_model": "d", "n_heads": "heads"}
    return story(**{names.get(name, name): value for name, value in changes.items()})


@pytest.mark.parametrize("changes", [{}, {"sentence": OTHER}, {"length": 9, "d_model": 4, "seed": 8}])
def test_f10_rows_are_the_rows_of_the_table(changes):
    s = oracle(changes)
    ids, x = read("F10", **changes)
    np.testing.assert_array_equal(ids.values[:, 0], s.ids)
    same(x.values, s.x)
    np.testing.assert_array_equal(x.painted("padding").all(1), s.pad)
    assert (x.values[s.pad] == 0).all()
    assert x.painted("x")[~s.pad].all()


def test_f10_says_that_padding_is_not_0():
    drawing = draw("F10", positions="interleaved")
    assert grids(drawing.figure)[1].values[-1].any()
    assert "no longer 0" in drawing.caption
    assert "all 0" in draw("F10").caption


@pytest.mark.parametrize("changes", [{}, {"sentence": OTHER}, {"bias": 0.5}, {"d_model": 4}])
def test_f11_x_times_three_weights(changes):
    s = oracle(changes)
    found = read("F11", **changes)
    by_place = sorted(found, key=lambda g: (g.left > 3, -round(g.top + g.bottom, 1), g.left))
    x, wq, q, wk, k, wv, v = by_place
    same(x.values, s.x)
    for grid, name in ((wq, "query"), (wk, "key"), (wv, "value")):
        same(grid.values, s.state[f"{name}.weight"])
    for grid, values, role in ((q, s.q, "q"), (k, s.k, "k"), (v, s.v, "v")):
        same(grid.values, values)
        assert grid.painted(role)[~s.pad].all()
        assert grid.painted("padding")[s.pad].all()
        assert (grid.values[s.pad] == changes.get("bias", 0)).all()


def test_f11_with_the_documents_relu_and_its_caption():
    same(sorted(read("F11", activation="relu"), key=lambda g: g.left)[-1].values, story(relu=True).v)
    assert "only as long as the bias is 0" in draw("F11").caption
    assert "does not stay 0: its keys are 0.50" in draw("F11", bias=0.5).caption


@pytest.mark.parametrize("changes", [{}, {"sentence": OTHER, "seed": 5}])
def test_f12_q_times_k_transposed(changes):
    s = oracle(changes)
    q, k, product = sorted(read("F12", **changes), key=lambda g: g.left)
    same(q.values, s.q)
    same(k.values, s.k.T)
    same(product.values, s.raw)
    np.testing.assert_array_equal(k.painted("padding"), np.broadcast_to(s.pad, k.values.shape))
    np.testing.assert_array_equal(product.painted("padding"), s.pad | s.pad[:, None])


# F13 to F16: scores and masks as heat maps


def shown(id, **changes):
    """Return the heat maps of a figure in drawing order. Colour bars are axes without an image."""
    return [heat(ax) for ax in draw(id, **changes).figure.axes if ax.images]


def check(panel, expected):
    """Check colours exactly and numbers to two decimals. NaN is dark grey and has no number."""
    colours, numbers, _, _ = panel
    np.testing.assert_allclose(colours, expected, rtol=1e-5, atol=1e-6)
    same(numbers, np.where(np.isnan(expected), np.nan, expected))


@pytest.mark.parametrize("changes", [{}, OTHER_SEED])
def test_f13_scores_with_a_query_in_each_row(changes):
    s = story(**changes)
    (panel,) = shown("F13", **changes)
    check(panel, s.raw)  # neither divided by √d_k nor masked
    if not changes:
        assert panel[2:] == (WORDS, WORDS)
    assert not np.allclose(s.scores, s.scores.T), "a transposed picture would pass"


@pytest.mark.parametrize("changes", [{}, OTHER_SEED])
def test_f14_padding_columns_are_masked(changes):
    s = story(**changes)
    (panel,) = shown("F14", **changes)
    check(panel, np.where(s.pad, np.nan, s.scores))


@pytest.mark.parametrize("changes", [{}, OTHER_SEED])
def test_f15_the_strict_upper_triangle_is_masked_too(changes):
    s = story(**changes)
    (panel,) = shown("F15", **changes)
    check(panel, np.where(s.pad | LATER, np.nan, s.scores))
    assert np.isfinite(np.diag(panel[0])[:5]).all()


@pytest.mark.parametrize("changes", [{}, OTHER_SEED])
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


# F17


@pytest.mark.parametrize("changes", [{}, {"causal": True}, {"sentence": OTHER, "length": 6}])
def test_f17_weights_times_v_and_the_residual(changes):
    s = oracle(changes)
    weights, v, z, x, again, total = read("F17", **changes)
    for grid, values in (
        (weights, s.weights),
        (v, s.v),
        (z, s.z),
        (x, s.x),
        (again, s.z),
        (total, s.x + s.z),
    ):
        same(grid.values, values)
    np.testing.assert_array_equal(weights.painted("masked"), ~s.may & ~s.pad[:, None])
    assert weights.painted("padding")[s.pad].all()
    assert (z.values[s.pad] == 0).all()


def test_f17_the_sum_is_what_a_residual_normalizes():
    total = read("F17")[-1].values
    s = story()
    y, _ = AddNorm(6, dtype=np.float64).forward(s.x, s.z)
    words = ~s.pad
    expected, _ = F.layer_norm(total[words], np.ones(6), np.zeros(6))
    np.testing.assert_allclose(y[words], expected, atol=0.03)  # computed from numbers with two decimals


def test_words_are_beside_the_rows():
    """Check that the first column of labels is the sentence from top to bottom."""
    ax = draw("F17").figure.axes[0]
    left = min(text.get_position()[0] for text in ax.texts if text.get_text() == "student")
    beside = [t for t in ax.texts if t.get_position()[0] == left and t.get_rotation() == 0]
    beside.sort(key=lambda text: -text.get_position()[1])
    assert [text.get_text() for text in beside] == WORDS


@pytest.mark.parametrize("id", ["F10", "F13", "F16"])
def test_an_empty_sentence_or_a_length_of_0(id):
    with pytest.raises(UserError, match="is empty"):
        draw(id, sentence="")
    with pytest.raises(UserError, match="length is 0: it must be a whole number, 1 or more"):
        draw(id, length=0)


@pytest.mark.parametrize(
    ("id", "changes", "match"),
    [
        ("F10", {"positions": "sines"}, "positions is 'sines': choose one of"),
        ("F11", {"activation": "tanh"}, "activation is 'tanh': choose one of"),
        ("F12", {"d_model": 0}, "d_model is 0: it must be a whole number, 1 or more"),
        ("F13", {"seed": -1}, "seed is -1"),
        ("F15", {"length": 2.5}, "length is 2.5"),
        ("F16", {"length": 40}, "does not fit"),
    ],
)
def test_invalid_inputs_are_refused_with_one_sentence(id, changes, match):
    with pytest.raises(UserError, match=match):
        draw(id, **changes)
