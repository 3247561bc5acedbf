"""The Transformer as a whole: padding, the inputs that it refuses, and decoding one token at a time."""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_model

from npformer import UserError
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.training.optimizer import Adam

SOURCE, TARGET_IN, TARGET = tiny_batch()


# --- padding must not change anything ---


def test_the_start_symbol_receives_attention_even_if_it_has_the_id_of_padding():
    _, cache = tiny_model(start_id=0).forward(SOURCE, np.array([[0, 4, 0]] * 3))
    weights = cache.decoder[0].self_attention.attention.weights  # (B, H, T, T)
    assert (weights[..., 0] > 0).all()
    assert not weights[..., 2].any()  # the padding at the end


@pytest.mark.parametrize("filled", [{}, {"mask_fill": -1e9}])
def test_masked_queries_have_zero_rows(filled):
    _, cache = tiny_model(query_masking="after", **filled).forward(SOURCE, TARGET_IN)
    encoder, decoder = cache.encoder[1], cache.decoder[1]
    for part, ids in (
        (encoder.self_attention, SOURCE),
        (decoder.self_attention, TARGET_IN),
        (decoder.cross, TARGET_IN),
    ):
        weights = part.attention.weights.swapaxes(1, 2)  # (B, T, H, S)
        assert not weights[ids == 0].any()
        assert weights[ids != 0].any(-1).all()


@pytest.mark.parametrize(
    ("positions", "counts_from_the_start", "reads_the_order"),
    [("rotary", False, True), ("relative", False, True), ("none", False, False), ("learned", True, True)],
)
def test_what_the_encoder_knows_of_positions(positions, counts_from_the_start, reads_the_order):
    """Padding in front shifts all positions, and the reversed sentence has the same tokens."""
    model, sentence = tiny_model(positions=positions), SOURCE[:1]

    def memory(ids):
        (k, v), *_ = model.encode(ids)[0]
        return np.concatenate([k, v], -1)[..., -sentence.shape[1] :, :]

    shifted = memory(np.pad(sentence, ((0, 0), (3, 0))))
    assert np.allclose(shifted, memory(sentence), rtol=0, atol=1e-12) != counts_from_the_start
    backwards = memory(sentence[:, ::-1])[..., ::-1, :]
    assert np.allclose(backwards, memory(sentence), rtol=0, atol=1e-12) != reads_the_order


# --- decoding ---


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "final_norm": True, "fused_projections": True},
        {"positions": "learned", "projection_activation": "relu", "attention_output": False},
        {"positions": "halves", "scale_scores": False, "masking_how": "add", "mask_fill": -1e9},
        {"positions": "rotary", "masking_how": "add", "mask_fill": -1e9},
    ],
)
def test_decoding_one_token_at_a_time_equals_the_whole_sentence(changes):
    model = tiny_model(**changes)
    target_in = np.array([[2, 4, 7, 5], [2, 6, 4, 8], [2, 8, 3, 3]])
    whole, _ = model.forward(SOURCE, target_in)
    memory, mask = model.encode(SOURCE)
    kv_cache = None
    for t in range(target_in.shape[1]):
        logits, kv_cache = model.decode_step(target_in[:, t], t, kv_cache, memory, mask)
        np.testing.assert_allclose(logits, whole[:, t], rtol=1e-9, atol=1e-11)


# --- training ---


def test_float32_stays_float32_through_a_whole_step():
    model = tiny_model(np.float32, dropout=0.1, label_smoothing=0.1)
    adam, rng = Adam(model), np.random.default_rng(0)
    logits, cache = model.forward(SOURCE, TARGET_IN, train=True, rng=rng)
    loss, loss_cache = cross_entropy(logits, TARGET, smoothing=0.1, pad_id=0)
    dlogits = cross_entropy_backward(1.0, loss_cache)
    model.backward(dlogits, cache)
    adam.step(1e-3)
    arrays = (logits, loss, dlogits, model.grads, model.values, adam.m, adam.v)
    assert [array.dtype for array in arrays] == [np.float32] * len(arrays)


# --- invalid inputs ---


def changed(ids, row, column, value):
    ids = ids.copy()
    ids[row, column] = value
    return ids


REFUSED = {
    "the source's": (
        changed(SOURCE, 1, 2, 11),
        TARGET_IN,
        r"source\[1, 2\] is 11, outside the vocabulary of 11 tokens: use ids from 0 to 10",
    ),
    "the target's": (
        SOURCE,
        changed(TARGET_IN, 0, 4, 9),
        r"target_in\[0, 4\] is 9, outside the vocabulary of 9 tokens: use ids from 0 to 8",
    ),
    "a long source": (np.full((3, 13), 4), TARGET_IN, "source is 13 tokens long and the model's limit is 12"),
    "a long target": (SOURCE, np.full((3, 13), 4), "target_in is 13 tokens long and the model's limit is 12"),
    "floats": (
        SOURCE.astype(float),
        TARGET_IN,
        r"source has shape \(3, 6\) and dtype float64: give integers",
    ),
    "three axes": (SOURCE, TARGET_IN[None], r"target_in has shape \(1, 3, 5\) and dtype int64"),
    "lists": ([[4, 5], [6]], TARGET_IN[:2], "source holds lists that differ in length"),
}


@pytest.mark.parametrize(("source", "target_in", "sentence"), REFUSED.values(), ids=REFUSED)
def test_invalid_ids_are_refused(source, target_in, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny_model().forward(source, target_in)


def test_encode_and_decode_step_refuse_invalid_ids_too():
    model = tiny_model()
    with pytest.raises(UserError, match=r"source\[0, 0\] is 11, outside"):
        model.encode(np.array([[11]]))
    memory, mask = model.encode(SOURCE)
    with pytest.raises(UserError, match=r"target\[1, 0\] is -1, outside"):
        model.decode_step(np.array([2, -1, 2]), 0, [None, None], memory, mask)
