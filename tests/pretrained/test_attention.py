"""Tests of the measure by which the most informative head is chosen."""

from itertools import product

import numpy as np
import pytest
from head_oracle import informativeness_row_by_row
from matplotlib.text import Text

import npformer
from npformer.pretrained.attention import TextAttention, informativeness

N = 8


def one_hot(keys):
    return np.eye(N)[keys]


UNINFORMATIVE = {
    "uniform": np.full((N, N), 1 / N),
    "a sink at the end symbol": one_hot([N - 1] * N),
    "a mixture of both": 0.5 / N + 0.5 * one_hot([N - 1] * N),
}


@pytest.mark.parametrize("by_distance", [False, True])
@pytest.mark.parametrize("name", UNINFORMATIVE)
def test_weights_that_do_not_depend_on_the_query_tell_nothing(name, by_distance):
    assert informativeness(UNINFORMATIVE[name], by_distance=by_distance) == pytest.approx(0, abs=1e-12)


def test_a_head_that_looks_up_words_is_the_most_informative():
    words = one_hot([3, 0, 5, 1, 7, 2, 6, 4])  # every query has its own key, in no order
    heads = np.stack([*UNINFORMATIVE.values(), words, 0.5 * words + 0.5 / N])  # (H, T, S)
    values = informativeness(heads[None])  # (1, H)
    assert values.shape == (1, 5)
    assert values[0].argmax() == 3
    assert values[0, 3] > 0.7
    assert values[0, 3] > values[0, 4] > values[0, :3].max()


def test_a_query_of_a_decoder_is_named_by_the_token_that_is_read_and_the_one_that_is_predicted():
    found = npformer.load("en-de").attention("A dog runs.")
    source, read, predicted = found.source_tokens, found.target_tokens, found.predicted_tokens
    both = [f"{one} → {other}" for one, other in zip(read, predicted, strict=True)]
    assert both[0] == f"<S> → {predicted[0]}"
    assert both[-1] == f"{read[-1]} → </S>"
    assert found.labels("encoder") == (source, source)
    assert found.labels("decoder") == (both, read)
    assert found.labels("cross") == (both, source)
    for figure in (found.plot("cross"), found.plot_head("cross"), found.plot_lines("cross")):
        assert set(both) <= {text.get_text() for text in figure.findobj(Text)}


@pytest.mark.parametrize("by_distance", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_measure_is_that_of_a_computation_row_by_row(rng, by_distance, causal):
    mask = np.tri(N, dtype=bool) if causal else np.ones((N, N), bool)
    weights = rng.dirichlet(np.full(N, 0.3), (2, 3, N)) * mask
    weights /= weights.sum(-1, keepdims=True)
    assert informativeness(np.ones((1, 1)), np.ones((1, 1), bool)) == 0  # a single place leaves no choice
    expected = informativeness_row_by_row(weights, mask, by_distance=by_distance)
    np.testing.assert_allclose(informativeness(weights, mask, by_distance=by_distance), expected, rtol=1e-10)


def of_pieces(pieces, weights):
    """Return the attention of a text, with weights (L, H, T, T)."""
    return TextAttention(text="", pieces=pieces, weights={"self": weights}, allowed=None, cache=None)


def test_the_most_informative_head_of_all_of_a_layer_and_of_a_number(rng):
    weights = rng.dirichlet(np.full(N, 0.3), (3, 2, N))
    found, values = of_pieces([f"w{n}" for n in range(N)], weights), informativeness(weights)
    for layer, head in product((None, 0, 1, 2), (None, 0, 1)):
        rows = range(3) if layer is None else [layer]
        columns = range(2) if head is None else [head]
        chosen = found.most_informative_head("self", layer=layer, head=head)
        assert chosen == max(product(rows, columns), key=lambda place: values[place])
    for settings, among in (({}, ""), ({"layer": 1}, " of layer 1"), ({"layer": 1, "head": 0}, None)):
        texts = [" ".join(text.get_text().split()) for text in found.plot_head(**settings).findobj(Text)]
        told = [text for text in texts if "the most informative head" in text]
        assert len(told) == (among is not None)
        assert all(f"the most informative head{among}: its weights depend most" in text for text in told)


@pytest.mark.parametrize("settings", [{}, {"layer": 3}, {"head": 1}, {"layer": 3, "head": 1}])
def test_what_is_too_large_for_labels_is_drawn_smaller(settings, rng):
    """30 layers, and 70 tokens; a layer and a head choose what is drawn."""
    found = of_pieces([f"w{n}" for n in range(70)], rng.dirichlet(np.full(70, 0.3), (30, 2, 70)))
    panels = [axes for axes in found.plot(**settings).axes if axes.images or axes.collections]
    expected = {0: 60, 1: 2 if "layer" in settings else 30, 2: 1}[len(settings)]
    assert len(panels) in (expected, expected + 1)  # with a colour bar


@pytest.mark.parametrize("draw", ["plot", "plot_head", "plot_lines"])
def test_characters_without_a_font_are_code_points(draw, monkeypatch):
    monkeypatch.setattr("npformer.plots.style._others", list)
    found = of_pieces(["the", "我", "cat"], np.full((1, 1, 3, 3), 1 / 3))
    texts = {text.get_text() for text in getattr(found, draw)(layer=0, head=0).findobj(Text)}
    assert "U+6211" in texts
    assert "我" not in texts
