"""Tables of sinusoids and position layers; their printed values are in test_document_numbers.py."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional.positions import LAYOUTS, sinusoids
from npformer.nn import FixedPositions, InputEmbedding, LearnedPositions


def test_zero_first_zeroes_position_0_only():
    plain, zeroed = sinusoids(4, 6), sinusoids(4, 6, zero_first=True)
    assert not zeroed[0].any()
    np.testing.assert_array_equal(zeroed[1:], plain[1:])
    assert plain[0].tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("layout", "exponents"), [("interleaved", [0, 0, 2, 2, 4, 4]), ("jianshu", [0, 2, 4, 6, 8, 10])]
)
def test_sines_and_cosines_alternate(layout, exponents):
    angle = 299 / 10000 ** (np.array(exponents) / 6)
    expected = np.where(np.arange(6) % 2, np.cos(angle), np.sin(angle))
    np.testing.assert_allclose(sinusoids(300, 6, layout)[299], expected, rtol=1e-12)


def test_marian_puts_the_sines_of_the_paper_before_its_cosines_in_float32():
    paper, marian = sinusoids(300, 8), sinusoids(300, 8, "marian")
    np.testing.assert_array_equal(marian[:, :4], paper[:, 0::2].astype(np.float32))
    np.testing.assert_array_equal(marian[:, 4:], paper[:, 1::2].astype(np.float32))


def test_tensor2tensor_reaches_the_wavelength_10000_at_the_last_of_its_sines():
    angle = 299 / 10000 ** (np.arange(4) / 3)
    np.testing.assert_allclose(sinusoids(300, 8, "halves")[299], [*np.sin(angle), *np.cos(angle)], rtol=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "halves", "marian"])
def test_pairs_refuse_an_odd_width(layout):
    with pytest.raises(UserError, match="sinusoids come in pairs, so d_model must be even, and it is 5"):
        sinusoids(3, 5, layout)


def test_an_unknown_layout_is_refused():
    with pytest.raises(
        UserError, match="unknown position layout 'rotary': choose one of interleaved, halves"
    ):
        sinusoids(3, 4, "rotary")


@pytest.mark.parametrize("layer", [FixedPositions(9, 4), LearnedPositions(9, 4)])
def test_a_later_start_continues_the_table(layer):
    whole, _ = layer.forward(9)
    part, _ = layer.forward(4, start=3)
    np.testing.assert_array_equal(part, whole[3:7])


@pytest.mark.parametrize("positions", [*LAYOUTS, "learned"])
def test_positions_are_added_to_the_scaled_embeddings(positions):
    layer = InputEmbedding(6, 4, 5, positions=positions, dtype=np.float64)
    ids = np.array([[3, 1, 3]])
    y, _ = layer.forward(ids)
    words = layer.tokens.weight.value[ids] * 2  # √4
    expected, _ = layer.positions.forward(3)
    np.testing.assert_allclose((y - words)[0], expected, atol=1e-15)
