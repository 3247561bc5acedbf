"""Encoder-only and decoder-only models: visible tokens, padding, decoding one token at a time."""

import numpy as np
import pytest
from tiny import tiny_config, tiny_model

from npformer.checking.leaks import assert_no_leak, movement
from npformer.errors import UserError
from npformer.models.bert import MaskedLanguageModel
from npformer.models.transformer.language_model import CausalLanguageModel

IDS = np.array([[2, 5, 6, 7, 5], [4, 8, 3, 0, 0]])
PRE = {"norm": "pre", "final_norm": True}
OPTIONS = {
    "post-norm": {},
    "pre-norm": PRE,
    "fused": {"fused_projections": True, "positions": "learned"},
    "tied": {"tied": "output", "scale_embedding": False, "output_bias": True},
    "queries masked": {"query_masking": "after", "activation": "gelu"},
}
both = pytest.mark.parametrize("kind", [MaskedLanguageModel, CausalLanguageModel])
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def tiny(kind, **changes):
    """Return a small model of one vocabulary, with random gains and biases."""
    return tiny_model(kind=kind, **({"source_vocab": 9} | changes))


# Dependence of outputs on inputs


@every_option
def test_the_next_token_does_not_leak(options):
    assert_no_leak(tiny(CausalLanguageModel, **options).forward, IDS[:1])


@every_option
def test_a_masked_token_is_predicted_from_both_sides(options):
    moved = movement(tiny(MaskedLanguageModel, **options).forward, IDS[:1])
    assert (moved > 1e-3).all()


@both
@every_option
def test_padding_and_other_sentences_change_nothing(kind, options):
    model = tiny(kind, **options)
    alone, _ = model.forward(IDS[1:, :3])
    together, cache = model.forward(IDS)
    # matrices of other sizes may be rounded differently
    np.testing.assert_allclose(together[1, :3], alone[0], rtol=1e-11, atol=1e-13)
    other, _ = model.forward(np.array([[8, 7, 6, 5, 4], IDS[1]]))
    np.testing.assert_array_equal(other[1], together[1])
    weights = cache.encoder[1].self_attention.attention.weights  # (B, H, T, T)
    assert not weights[1, :, :, 3:].any()


# Decoding, parameters, settings


@every_option
def test_decoding_one_token_at_a_time_equals_the_whole_sentence(options):
    model = tiny(CausalLanguageModel, **options)
    ids = np.array([[2, 5, 6, 7, 5], [2, 8, 4, 4, 3]])
    logits, _ = model.forward(ids)
    kv_cache = None
    for t in range(5):
        step, kv_cache = model.decode_step(ids[:, t], t, kv_cache)
        np.testing.assert_allclose(step, logits[:, t], rtol=1e-11, atol=1e-13)


def test_the_117_million_parameters_of_radford_and_a_layer_of_devlin():
    """d_model 768, 12 heads, d_ff 3072, learned positions; here with one layer and a small vocabulary."""
    config = tiny_config(
        source_vocab=10,
        target_vocab=10,
        d_model=768,
        d_ff=3072,
        n_heads=12,
        n_layers=1,
        max_length=16,
        positions="learned",
        activation="gelu",
        tied="output",
    )
    model = CausalLanguageModel(config)
    layer = model.encoder.count_parameters()
    assert layer == 7_087_872
    assert model.count_parameters() == layer + (10 + 16) * 768
    assert 12 * layer + (40_478 + 512) * 768 == 116_534_784  # 40,478 subwords, 512 positions


@both
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[5, 9]], r"ids\[0, 1\] is 9, outside the vocabulary of 9 tokens"),
        ([[-1]], r"ids\[0, 0\] is -1"),
        ([[1] * 13], "ids is 13 tokens long and the model's limit is 12"),
        ([[5, 6], [5]], "ids holds lists that differ in length"),
        ([5, 6], r"ids has shape \(2,\)"),
    ],
)
def test_invalid_ids_are_refused(kind, ids, message):
    with pytest.raises(UserError, match=message):
        tiny(kind).forward(ids)


def test_a_step_beyond_the_last_position_is_refused():
    with pytest.raises(UserError, match="13 tokens long and the model's limit is 12"):
        tiny(CausalLanguageModel).decode_step(np.array([5]), 12, None)


@both
def test_two_vocabularies_are_refused(kind):
    with pytest.raises(UserError, match="source_vocab is 11 and target_vocab 9, and a model of one language"):
        kind(tiny_config())
