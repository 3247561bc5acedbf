"""Tests of F10 to F17: the matrices and heat maps of one padded sentence in one layer."""

import numpy as np
import pytest
from figure_cells import heat, picture, read, same
from jianshu_oracle import LATER, WORDS, softmax, story

OTHER = {"sentence": "the key is old", "seed": 5}


@pytest.mark.parametrize("changes", [OTHER | {"d_model": 4}, {"bias": 0.5}])
def test_f11_x_times_three_weights(changes):
    s = story(**changes)
    by_place = sorted(read("F11", **changes), key=lambda g: (g.left > 3, -round(g.top + g.bottom, 1), g.left))
    x, wq, q, wk, k, wv, v = by_place
    same(x.values, s.x)
    for grid, name in ((wq, "query"), (wk, "key"), (wv, "value")):
        same(grid.values, s.state[f"{name}.weight"])
    for grid, values, role in ((q, s.q, "q"), (k, s.k, "k"), (v, s.v, "v")):
        same(grid.values, values)
        assert grid.painted(role)[~s.pad].all()
        assert grid.painted("padding")[s.pad].all()
        assert (grid.values[s.pad] == changes.get("bias", 0)).all()


# F13 to F16: scores and masks as heat maps


def shown(id, **changes):
    """Return the heat maps of a figure in drawing order. Colour bars are axes without an image."""
    return [heat(ax) for ax in picture(id, **changes).axes if ax.images]


def check(panel, expected):
    """Check colours exactly and numbers to two decimals. NaN is dark grey and has no number."""
    colours, numbers, _, _ = panel
    np.testing.assert_allclose(colours, expected, rtol=1e-5, atol=1e-6)
    same(numbers, np.where(np.isnan(expected), np.nan, expected))


def encoder_above_decoder(changes):
    """Yield what the six panels of F16 show: the scores, then the weights before and after the query mask."""
    for causal in (False, True):
        s = story(**changes, causal=causal)
        queries = s.pad[:, None]
        yield np.where(queries, 0, np.where(s.may, s.scores, np.nan))
        before = np.where(queries, 1 / 7, softmax(s.scores, s.may))
        yield np.where(s.may | queries, before, np.nan)
        yield np.where(s.may, s.weights, np.nan)


HEAT_MAPS = {  # the numbers of each panel
    "F13": lambda s, _: [s.raw],  # neither divided by √d_k nor masked
    "F14": lambda s, _: [np.where(s.pad, np.nan, s.scores)],
    "F15": lambda s, _: [np.where(s.pad | LATER, np.nan, s.scores)],  # the diagonal remains
    "F16": lambda _, changes: encoder_above_decoder(changes),
}


@pytest.mark.parametrize("changes", [{}, OTHER], ids=["default", "other"])
@pytest.mark.parametrize("id", HEAT_MAPS)
def test_f13_to_f16_have_a_query_in_each_row_and_grey_where_it_may_not_attend(id, changes):
    s = story(**changes)
    assert not np.allclose(s.scores, s.scores.T), "a transposed picture would pass"
    panels = shown(id, **changes)
    for panel, expected in zip(panels, HEAT_MAPS[id](s, changes), strict=True):
        check(panel, expected)
    if not changes:
        assert panels[0][2:] == (WORDS, WORDS)


# F17


@pytest.mark.parametrize("changes", [{"causal": True}, {"sentence": "the key is old", "length": 6}])
def test_f17_weights_times_v_and_the_residual(changes):
    s = story(**changes)
    found = read("F17", **changes)
    for grid, values in zip(found, (s.weights, s.v, s.z, s.x, s.z, s.x + s.z), strict=True):
        same(grid.values, values)
    weights, _, z, *_ = found
    np.testing.assert_array_equal(weights.painted("masked"), ~s.may & ~s.pad[:, None])
    assert weights.painted("padding")[s.pad].all()
    assert (z.values[s.pad] == 0).all()
