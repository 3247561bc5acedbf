"""Tests of F27 and F28: the vectors in one encoder, compared with a layer that the test runs itself."""

import pytest
from datawhale_oracle import encoder
from figure_cells import as_text, draw, named, picture, shows, texts


@pytest.mark.parametrize(("id", "words"), [("F27", 3), ("F28", 2)])
def test_f27_f28_one_encoder(id, words):
    figure = picture(id)
    x, z, normalised, r = encoder(words)
    drawn = named(figure)
    for name, values in (("x", x), ("z", normalised), ("r", r)):
        assert all(shows(drawn[f"{name}_{i + 1}"][0], values[i]) for i in range(words)), name
    assert not shows(drawn["z_1"][0], z[0])
    assert drawn["x_1"][0].top < drawn["z_1"][0].bottom < drawn["z_1"][0].top < drawn["r_1"][0].bottom
    assert texts(figure).count("self-attention") == 1
    assert texts(figure).count("feed-forward") == (1 if id == "F27" else 2)
    changed = named(picture(id, seed=3))
    assert all(shows(changed[f"r_{i + 1}"][0], encoder(words, seed=3)[3][i]) for i in range(words))
    assert not shows(changed["r_1"][0], r[0])


def test_the_caption_of_f28_quotes_the_output():
    _, _, _, r = encoder(2)
    assert as_text(r[0]) in draw("F28").caption
