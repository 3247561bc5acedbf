"""Tests of F60: the drawn weights are those computed from the model's numbers."""

import numpy as np
import pytest
from figure_cells import picture, texts
from matplotlib.patches import Rectangle
from trained_oracle import softmax

from npformer.data.if_then import ACTIONS, FAMOUS, TRIGGERS
from npformer.plots import text_problems

LIKE = "upload songs from Spotify to a YouTube playlist"


def expected(reader, description):
    """Compute (latent, active, answer) of trigger and action by the equations from the model's states."""
    model, words = reader.model, reader.codec.words(description)
    ids = np.array([reader.codec.encode(description)])
    vectors = model.tokens.weight.value[ids].astype(np.float64)
    states = model.reading.forward(vectors.astype(np.float32))[0][0].astype(np.float64)  # (S, E)
    found = []
    for answer, classes in ((model.trigger, TRIGGERS), (model.action, ACTIONS)):
        u, v = answer.attention.latent_weight.value[:, 0], answer.attention.active_weight.value
        latent, d = softmax(states @ u), softmax(states @ v[:, : len(words)])
        w = np.einsum("ij,j->i", d, latent)
        w /= w.sum()
        logits = w @ vectors[0] @ answer.output.weight.value + answer.output.bias.value
        found.append((latent, w, classes[int(logits.argmax())]))
    return found


def numbers(figure):
    """Return the numbers in the cells in the order of writing."""
    return [float(text) for text in texts(figure) if text.replace(".", "").isdigit()]


@pytest.mark.parametrize(
    "descriptions", [tuple(recipe.description for recipe in FAMOUS), (LIKE,)], ids=["the paper's", "another"]
)
def test_the_weights_are_those_of_the_equations(studio, descriptions):
    figure = picture("F60", studio, descriptions=descriptions)
    assert text_problems(figure) == []
    shown = numbers(figure)
    expected_numbers = []
    for description in descriptions:
        for latent, w, answer in expected(studio.recipe_reader, description):
            expected_numbers += [*latent, *w]
            assert answer in texts(figure)
    np.testing.assert_allclose(shown, expected_numbers, atol=0.0051)


def test_the_frames_are_at_the_chosen_channels(studio):
    """Check that there is a frame for each answer whose channel the description names."""
    figure = picture("F60", studio)
    answers = [(r, found[2]) for r in FAMOUS for found in expected(studio.recipe_reader, r.description)]
    named = sum(
        answer.partition(".")[0].lower() in recipe.description.lower().split() for recipe, answer in answers
    )
    rings = [p for p in figure.axes[0].patches if isinstance(p, Rectangle) and p.get_linewidth() > 2]
    assert len(rings) == named
