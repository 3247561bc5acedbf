"""Numbers 1 to 12 that the documents give: formulas and single components."""

import numpy as np
import pytest
from tiny import normal

from npformer.errors import UserError
from npformer.functional import (
    Masking,
    cross_entropy,
    kl_divergence,
    merge_heads,
    merge_heads_on_batch,
    smooth_targets,
    softmax,
    split_heads,
    split_heads_on_batch,
    tutorial_attention,
    tutorial_attention_backward,
)
from npformer.functional.positions import sinusoids
from npformer.nn import Embedding


def about(value, digits=4):
    """Check that the values are equal when rounded to as many digits as the document prints."""
    return pytest.approx(value, abs=0.5 * 10**-digits, rel=0)


# --- 1 to 3: attention and heads ---


def test_3_heads_on_the_batch_axis_are_the_same_heads():
    """3: (h·B, T, d/h), head 0 of every sentence first, holds what (B, h, T, d/h) holds."""
    x = normal(4, 5, 12)
    on_batch = split_heads_on_batch(x, 3)  # (3·4, 5, 4)
    np.testing.assert_array_equal(on_batch.reshape(3, 4, 5, 4).swapaxes(0, 1), split_heads(x, 3))
    np.testing.assert_array_equal(merge_heads_on_batch(on_batch, 3), merge_heads(split_heads(x, 3)))


# --- 4 to 6: the input of the stacks ---


@pytest.mark.parametrize(
    ("layout", "vector"),
    [
        ("interleaved", [0.8415, 0.5403, 0.0100, 0.99995]),
        ("jianshu", [0.8415, 0.99995, 0.0001, 1]),
        ("halves", [0.8415, 0.0001, 0.5403, 1]),
    ],
)
def test_4_position_1_in_four_dimensions(layout, vector):
    """4: the three documents give three different vectors."""
    ours = sinusoids(2, 4, layout)[1]
    assert ours.tolist() == [about(x, 5 if x == 0.99995 else 4) for x in vector]


def test_6_row_0_is_zero_and_is_not_learned():
    """6: this holds even if the table's row 0 is not zero, or dy there is large."""
    layer = Embedding(5, 3, zero_id=0, dtype=np.float64)
    assert not layer.weight.value[0].any()
    layer.weight.value[0] = 7
    ids = np.array([[0, 4, 0]])
    y, cache = layer.forward(ids)
    assert y.any(-1).tolist() == [[False, True, False]]
    layer.backward(np.full(y.shape, 100.0), cache)
    assert layer.weight.grad.any(-1).tolist() == [False, False, False, False, True]


# --- 7 to 9: masks and symmetry ---


MASKED_ROW = {
    "replaced by -2^32+1": (Masking(-(2.0**32) + 1), np.float64, "uniform"),
    "-1e9 added, float64": (Masking(-1e9, "add"), np.float64, "raw"),
    "-1e9 added, float32": (Masking(-1e9, "add"), np.float32, "uniform"),
    "npformer": (Masking(), np.float64, "zero"),
    "npformer, float32": (Masking(), np.float32, "zero"),
}


@pytest.mark.parametrize(("masking", "dtype", "expected"), MASKED_ROW.values(), ids=MASKED_ROW)
def test_8_a_fully_masked_row(masking, dtype, expected):
    """8: the weights are uniform, unmasked or zero; the gradients are finite."""
    q, k, v = normal(3, 1, 4, 8).astype(dtype)
    y, cache = tutorial_attention(q, k, v, np.zeros((4, 4), bool), masking=masking)
    raw, _ = softmax(cache.scores)
    rows = {"uniform": np.full_like(raw, 0.25), "raw": raw, "zero": np.zeros_like(raw)}
    np.testing.assert_allclose(cache.weights, rows[expected], atol=1e-6)
    assert np.abs(raw - 0.25).max() > 0.05
    assert all(np.isfinite(d).all() for d in tutorial_attention_backward(np.ones_like(y), cache))


def test_8_no_key_at_all():
    with pytest.raises(UserError, match="attention needs at least one key"):
        tutorial_attention(*(np.ones((1, n, 8)) for n in (2, 0, 0)), np.ones((2, 0), bool), masking=Masking())


# --- 10 to 12: losses and the position-wise layers ---


MERCI = np.log([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])  # a, am, I, thanks, student, <eos>
THANKS = np.array(3)


def test_11_merci_with_label_smoothing():
    """11: with smoothing .1 over six classes: cross-entropy 1.6325, divergence 1.2116."""
    assert cross_entropy(MERCI, THANKS, smoothing=0.1)[0] == about(1.6325)
    assert kl_divergence(MERCI, smooth_targets(THANKS, 6, 0.1))[0] == about(1.2116)
