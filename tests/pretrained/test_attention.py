"""Tests of the measure by which the most informative head is chosen."""

from itertools import product

import numpy as np
import pytest
from family_models import CONFIGS, random_model
from head_oracle import informativeness_row_by_row
from matplotlib.text import Text
from refused import refused

import npformer
from npformer.data.encoding import Encoding
from npformer.pretrained.attention import TextAttention, attention_of_text, informativeness

N = 8


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
    return TextAttention(text="", pieces=pieces, weights={"self": weights}, masks=None, cache=None)


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


def test_a_local_layer_has_a_mask_of_its_own(rng):
    """In pictures and in the choice of a head: the local layers of a Gemma 3 have a window."""
    model = random_model(CONFIGS["gemma3_text"])
    found = attention_of_text(model, "abcdef", Encoding([3, 4, 5, 6, 7, 8], list("abcdef"), []))
    weights = found.weights["self"]
    masks = [found.mask("self", layer) for layer in range(len(weights))]
    assert len({int(mask.sum()) for mask in masks}) == 2
    np.testing.assert_array_equal([(layer != 0).all(0) for layer in weights], masks)
    np.testing.assert_array_equal(found.mask(), np.tri(6, dtype=bool))
    values = [informativeness(each, mask) for each, mask in zip(weights, masks, strict=True)]
    assert found.most_informative_head("self") == np.unravel_index(np.argmax(values), np.shape(values))
    grid = found.plot().axes
    for layer, mask in enumerate(masks):
        alone = found.plot_head(layer=layer, head=0)
        drawn = [axes.images[0].get_array() for axes in (alone.axes[0], grid[layer * weights.shape[1]])]
        for image in drawn:
            np.testing.assert_array_equal(np.ma.getmaskarray(image), ~mask)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda found: found.most_informative_head("self", layer=99), "layer is 99: there are 3 layers"),
        (lambda found: found.most_informative_head("self", layer="1"), "layer is '1': there are 3 layers"),
        (lambda found: found.most_informative_head("self", head=-1), "head is -1: there are 2 heads"),
        (lambda found: found.mask("cross"), "this model has no encoder-decoder attention: it has self"),
        (lambda found: found.mask("self", 3), "layer is 3: there are 3 layers"),
        (lambda _: npformer.load("en-de").attention("A dog.").mask("self"), "has no self-attention: it has"),
    ],
)
def test_what_is_not_there_is_refused(call, words, rng):
    with refused(words):
        call(of_pieces(["a", "b"], rng.dirichlet(np.ones(2), (3, 2, 2))))


@pytest.mark.parametrize(
    ("settings", "n_panels"), [({}, 60), ({"layer": 3}, 2), ({"layer": 3, "head": 1}, 1)]
)
def test_what_is_too_large_for_labels_is_drawn_smaller(settings, n_panels, rng):
    """30 layers, and 70 tokens; a layer and a head choose what is drawn."""
    found = of_pieces([f"w{n}" for n in range(70)], rng.dirichlet(np.full(70, 0.3), (30, 2, 70)))
    panels = [axes for axes in found.plot(**settings).axes if axes.images or axes.collections]
    assert len(panels) in (n_panels, n_panels + 1)  # with a colour bar
