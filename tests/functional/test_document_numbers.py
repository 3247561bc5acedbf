"""Numbers 1 to 12 that the documents give: formulas and single components.

Numbers 13 to 17, which concern whole models, are in tests/models/test_document_numbers.py.
"""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_config, tiny_model

from npformer import MultiHeadAttention, UserError
from npformer.functional import (
    Masking,
    attention,
    cross_entropy,
    kl_divergence,
    l2_distance,
    layer_norm,
    merge_heads,
    merge_heads_on_batch,
    smooth_targets,
    softmax,
    split_heads,
    split_heads_on_batch,
    tutorial_attention,
    tutorial_attention_backward,
)
from npformer.functional.masks import padding_mask
from npformer.functional.positions import LAYOUTS, sinusoids
from npformer.models.transformer import Encoder
from npformer.nn import Embedding, InputEmbedding


def about(value, digits=4):
    """Check that the values are equal when rounded to as many digits as the document prints."""
    return pytest.approx(value, abs=0.5 * 10**-digits, rel=0)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# --- 1 to 3: attention and heads ---


def test_1_scaled_scores_14_and_12():
    """1: scores 112 and 96, divided by 8, give .880797 and .119203."""
    q, k = np.ones((1, 64)), np.array([[1.75], [1.5]]) * np.ones(64)
    _, cache = attention(q, k, np.eye(2))
    assert cache.scores.tolist() == [[14, 12]]
    assert cache.weights[0].tolist() == [about(0.880797, 6), about(0.119203, 6)]


def test_1_unscaled_scores_112_and_96():
    """1: without the scale, the softmax is nearly one-hot."""
    weights, _ = softmax(np.array([112.0, 96.0]))
    assert weights.tolist() == [about(1, 6), about(0, 6)]


def test_2_shapes_of_300_wide_attention_with_6_heads():
    """2: query (64, 12, 300), key and value (64, 10, 300), 361,200 parameters."""
    layer = MultiHeadAttention(300, 6)
    x, memory = np.zeros((64, 12, 300), np.float32), np.zeros((64, 10, 300), np.float32)
    y, cache = layer.forward(x, memory, memory)
    assert cache.attention.q.shape == (64, 6, 12, 50)
    assert cache.attention.scores.shape == (64, 6, 12, 10)
    assert y.shape == (64, 12, 300)
    assert layer.count_parameters() == 361_200


def test_2_an_indivisible_width_is_refused():
    """2: 300 is not divisible by 7."""
    with pytest.raises(UserError, match="d_model 300 is not divisible by 7 heads"):
        MultiHeadAttention(300, 7)


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


def test_4_dimensions_4_to_7_of_20():
    """4: the curves that the document draws, at positions 10 and 99."""
    table = sinusoids(100, 20)
    assert table[10, 4:8].tolist() == [about(x) for x in (0.9999, -0.0141, 0.5899, 0.8075)]
    assert table[99, 4:8].tolist() == [about(x) for x in (0.0175, -0.9998, -0.0367, 0.9993)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_5_longer_tables_extend_shorter_ones(layout):
    """5: PE(200)[:100] = PE(100)."""
    np.testing.assert_array_equal(sinusoids(200, 20, layout)[:100], sinusoids(100, 20, layout))


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


def test_6_embeddings_times_the_root_of_the_width():
    """6: √512 = 22.627."""
    layer = InputEmbedding(5, 512, 4, positions="none", dtype=np.float64)
    y, _ = layer.forward(np.array([[3]]))
    ratio = y[0, 0] / layer.tokens.weight.value[3]
    np.testing.assert_allclose(ratio, 22.627, atol=5e-4)


# --- 7 to 9: masks and symmetry ---


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("position", [1, 2, 4])
def test_7_a_later_input_changes_no_earlier_output(dtype, position):
    """7: the earlier outputs are equal to the bit."""
    model = tiny_model(dtype)
    source, target_in, _ = tiny_batch()
    before, _ = model.forward(source, target_in)
    changed = target_in.copy()
    changed[:, position] = (changed[:, position] + 1) % 9
    after, _ = model.forward(source, changed)
    np.testing.assert_array_equal(after[:, :position], before[:, :position])
    assert (after[:, position] != before[:, position]).any(-1).all()


def test_7_padded_keys_weigh_0_and_rows_sum_to_1_or_0():
    """7: the second sentence is padding only."""
    ids = np.array([[5, 6, 0], [0, 0, 0]])
    q = normal(2, 1, 3, 4)
    _, cache = attention(q, q, q, padding_mask(ids))
    assert not cache.weights[0, ..., 2].any()
    np.testing.assert_allclose(cache.weights.sum(-1)[:, 0], [[1, 1, 1], [0, 0, 0]], rtol=1e-15)


def test_8_the_documents_number_in_float32():
    """8: −2³² + 1 is not a float32; the nearest is −2³²."""
    assert np.float32(-(2**32) + 1) == -4294967296


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


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_9_without_positions_the_encoder_is_permutation_equivariant(norm):
    """9: permuted tokens give the same outputs, permuted."""
    encoder = Encoder(tiny_config(norm=norm, final_norm=True), dtype=np.float64)
    x, order = normal(2, 5, 8), [3, 0, 4, 1, 2]
    y, _ = encoder.forward(x)
    permuted, _ = encoder.forward(x[:, order])
    np.testing.assert_allclose(permuted, y[:, order], rtol=1e-12, atol=1e-13)
    assert np.abs(permuted - y).max() > 0.1


# --- 10 to 12: losses and the position-wise layers ---


def test_10_smoothed_targets_over_three_classes():
    """10: with smoothing .1 the target has .9333 and the others have .0333."""
    assert smooth_targets(np.array(1), 3, 0.1).tolist() == [about(0.0333), about(0.9333), about(0.0333)]


MERCI = np.log([0.2, 0.2, 0.1, 0.2, 0.2, 0.1])  # a, am, I, thanks, student, <eos>
THANKS = np.array(3)


def test_11_merci_before_training():
    """11: L2 distance .8832; cross-entropy and divergence from a one-hot target are both 1.6094."""
    one_hot = smooth_targets(THANKS, 6, 0.0)
    assert l2_distance(MERCI, one_hot)[0] == about(0.8832)
    assert cross_entropy(MERCI, THANKS)[0] == about(1.6094)
    assert kl_divergence(MERCI, one_hot)[0] == about(1.6094)


def test_11_merci_with_label_smoothing():
    """11: with smoothing .1 over six classes: cross-entropy 1.6325, divergence 1.2116."""
    assert cross_entropy(MERCI, THANKS, smoothing=0.1)[0] == about(1.6325)
    assert kl_divergence(MERCI, smooth_targets(THANKS, 6, 0.1))[0] == about(1.2116)


def test_11_the_printed_rows_are_rounded():
    """11: as printed, their mean cross-entropy is .0776, but the rows of a softmax would sum to 1."""
    rows = np.array(
        [
            [0.01, 0.02, 0.93, 0.01, 0.03, 0.01],
            [0.01, 0.8, 0.1, 0.05, 0.01, 0.03],
            [0.99, 0.001, 0.001, 0.001, 0.002, 0.001],
            [0.001, 0.002, 0.001, 0.02, 0.94, 0.01],
            [0.01, 0.01, 0.001, 0.001, 0.001, 0.98],
        ]
    )
    sums = rows.sum(-1)
    assert sums.tolist() == [about(s, 9) for s in (1.01, 1.00, 0.996, 0.974, 1.003)]
    loss, _ = cross_entropy(np.log(rows), np.array([2, 1, 0, 4, 5]))  # of the rows rescaled to sum to 1
    assert loss - np.log(sums).mean() == about(0.0776)


def test_12_layer_norm_divides_by_d():
    """12: the variance of 1, 2, 3, 4 is 5/4, and not 5/3."""
    y, _ = layer_norm(np.array([1.0, 2, 3, 4]), np.ones(4), np.zeros(4), eps=0.0)
    np.testing.assert_allclose(y, np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(5 / 4), rtol=1e-14)
