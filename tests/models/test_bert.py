"""BERT: its configuration, segments, padding, initial weights, and training."""

import numpy as np
import pytest

from npformer import UserError
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.bert import BERT_PRESETS, Bert, BertConfig

SIZES = {"vocab_size": 9, "d_model": 8, "n_layers": 2, "n_heads": 4, "max_length": 8}
IDS = np.array([[2, 5, 8, 7, 5, 3], [4, 8, 3, 0, 0, 0]])
TARGETS = np.array([[0, 5, 6, 0, 0, 0], [0, 7, 0, 0, 0, 0]])  # the hidden tokens; 8 stands for most of them
SEGMENT_IDS = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]])


def tiny(dtype=np.float64, **changes):
    """Return a small model whose weights are larger than the initial ones, so that differences show."""
    model = Bert(BertConfig(**(SIZES | changes)), rng=np.random.default_rng(0), dtype=dtype)
    model.values += 0.3 * np.random.default_rng(1).standard_normal(model.values.shape).astype(dtype)
    return model


def loss_and_gradients(model, ids, targets):
    """Return the loss and the gradients of all parameters."""
    logits, cache = model.forward(ids)
    loss, loss_cache = cross_entropy(logits, targets, pad_id=0)
    model.zero_grad()
    model.backward(cross_entropy_backward(logits.dtype.type(1), loss_cache), cache)
    return float(loss), model.grads


# The configuration


HEADS = [{"head": head, "n_classes": 3} for head in ("none", "text classes", "token classes")]


@pytest.mark.parametrize("changes", [{}, {"d_ff": 5, "n_segments": 3}, {"n_segments": 0}, *HEADS])
def test_the_number_of_parameters_is_known_without_building(changes):
    model = tiny(**changes)
    assert model.config.count_parameters() == model.count_parameters()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("bert-base", 109_514_298),  # Hugging Face's BertForMaskedLM, bert-base-uncased
        ("bert-large", 335_174_458),  # bert-large-uncased
        ("bert-small", 336_712),
    ],
)
def test_presets(name, count):
    assert BertConfig.preset(name).count_parameters() == count
    assert name in BERT_PRESETS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_segments": -1}, "n_segments is -1: it must be a whole number, 0 or more"),
        ({"n_heads": 3}, "d_model 8 is not divisible by n_heads 3: change one of them"),
        ({"activation": "gelo"}, "activation is 'gelo': choose one of none, relu, "),
        ({"attention_dropout": 1.0}, "attention_dropout is 1.0: it must be at least 0 and below 1"),
        ({"norm_eps": 0}, "norm_eps is 0: it must be a number above 0"),
        ({"pad_id": -1}, "pad_id is -1: it must be a whole number, 0 or more"),
        ({"head": "token"}, "head is 'token': choose one of "),
        ({"head_activation": "gelo"}, "head_activation is 'gelo': choose one of "),
        ({"heads": 2}, "a BertConfig has no setting 'heads'"),
    ],
)
def test_impossible_settings(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        BertConfig().replace(**(SIZES | changes))


def test_without_segments_there_is_neither_a_table_nor_a_place_for_segment_ids():
    model, one_segment = tiny(n_segments=0), tiny(n_segments=1)
    names = {name for name, _ in model.named_parameters()}
    assert {name for name, _ in one_segment.named_parameters()} - names == {"embedding.segments.weight"}
    state = one_segment.state_dict()
    state.pop("embedding.segments.weight")
    model.load_state_dict(state)
    one_segment.embedding.segments.weight.value[...] = 0  # the same for all tokens: nothing is added
    np.testing.assert_array_equal(model.forward(IDS)[0], one_segment.forward(IDS)[0])
    with pytest.raises(UserError, match="segment_ids were given to a model without segments: leave them"):
        model.forward(IDS, np.zeros_like(IDS))


def test_the_activation_is_that_of_the_encoder_and_of_the_head():
    """The exact GELU by default; every other activation changes both the encoder and the head."""
    assert BertConfig().activation == "gelu"
    model = tiny()
    found = []
    for activation in ("gelu", "gelu_tanh"):
        changed = tiny(activation=activation)
        x, _ = changed.embedding.forward(IDS, SEGMENT_IDS)
        found.append((changed.encoder.forward(x)[0], model.head.forward(x)[0], changed.head.forward(x)[0]))
    assert (found[0][0] != found[1][0]).any()
    np.testing.assert_array_equal(found[0][1], found[0][2])
    assert (found[1][1] != found[1][2]).any()


def test_the_initial_weights_are_those_of_bert():
    """The standard deviation is 0.02, so the first predictions are almost uniform."""
    model = Bert(BertConfig.preset("bert-small"), rng=np.random.default_rng(0))
    for name, parameter in model.named_parameters():
        if parameter.value.ndim == 1:
            assert set(parameter.value) == {1.0 if name.endswith("gain") else 0.0}, name
        else:
            few = parameter.value.size < 1000  # the table of segments
            assert parameter.value.std() == pytest.approx(0.02, rel=0.15 if few else 0.05), name
    loss, _ = loss_and_gradients(model, IDS, TARGETS)
    # the logits have the standard deviation 0.02 sqrt(96) = 0.2, and there are three targets
    assert loss == pytest.approx(np.log(1000), abs=0.3)


def test_the_encoder_has_both_dropouts_of_the_configuration():
    encoder = BertConfig(**SIZES, dropout=0.2, attention_dropout=0.3).encoder
    assert (encoder.dropout, encoder.attention_dropout) == (0.2, 0.3)


def test_one_product_computes_queries_keys_and_values():
    for layer in tiny().encoder.layers:
        assert len(layer.self_attention.query_key_value.weight.shape) == 2


def test_the_head_shares_its_weight_with_the_embedding():
    model = tiny()
    assert model.head.output.weight is model.embedding.tokens.weight


# Dependence of outputs on inputs


def test_padding_changes_nothing():
    model = tiny()
    padded = [np.pad(array, ((0, 0), (0, 2))) for array in (IDS, TARGETS)]
    loss, grads = loss_and_gradients(model, IDS, TARGETS)
    grads = grads.copy()
    with_padding, grads_with_padding = loss_and_gradients(model, *padded)
    assert with_padding == pytest.approx(loss, rel=1e-13)
    np.testing.assert_allclose(grads_with_padding, grads, rtol=1e-9, atol=1e-13)


def test_the_embedding_is_normalized_after_the_sum_of_three_vectors():
    embedding = tiny().embedding
    tables = (embedding.tokens.weight.value[IDS], embedding.positions.weight.value[:6])
    x = sum(tables) + embedding.segments.weight.value[SEGMENT_IDS]
    x = x - x.mean(-1, keepdims=True)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
    expected = expected * embedding.norm.gain.value + embedding.norm.bias.value
    found, _ = embedding.forward(IDS, SEGMENT_IDS)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_positions_that_are_counted_from_that_of_padding():
    """The first token reads row first_position, and padding is not counted (RoBERTa)."""
    config = BertConfig(
        vocab_size=9, d_model=4, n_layers=1, n_heads=2, max_length=6, n_segments=0, pad_id=1, first_position=2
    )
    embedding = Bert(config, rng=np.random.default_rng(0), dtype=np.float64).embedding
    assert embedding.positions.weight.shape == (8, 4)
    _, cache = embedding.forward(np.array([[5, 1, 6, 7, 1]]), None)
    np.testing.assert_array_equal(cache.positions.ids, [[2, 1, 3, 4, 1]])


def test_segments_are_told_apart_and_the_first_is_the_default():
    model = tiny()
    default, _ = model.forward(IDS)
    np.testing.assert_array_equal(model.forward(IDS, np.zeros_like(IDS))[0], default)
    assert np.abs(model.forward(IDS, SEGMENT_IDS)[0] - default).max() > 1e-3


def test_a_mask_may_be_a_list_and_others_do_not_attend_to_what_it_leaves_out():
    model, mask = tiny(), [[True, True, False]]
    one, other = (model.forward(ids, mask=mask)[0][:, :2] for ids in ([[1, 2, 3]], [[1, 2, 4]]))
    np.testing.assert_array_equal(one, other)
    with pytest.raises(UserError, match="give a bool for each of the ids"):
        model.forward([[1, 2, 3]], mask=[[1, 1, 0]])


@pytest.mark.parametrize(
    ("ids", "segment_ids", "sentence"),
    [
        ([[9]], None, r"ids\[0, 0\] is 9, outside the vocabulary of 9 tokens"),
        ([[1] * 9], None, "ids is 9 tokens long and the model's limit is 8"),
        ([[1, 2]], [[0, 2]], "segment_ids holds numbers from 0 to 2: use 0 to 1, since the model has 2"),
        ([[1, 2]], [[0, -1]], "segment_ids holds numbers from -1 to 0: use 0 to 1, since the model has 2"),
        ([[1, 2]], [[0]], r"segment_ids has shape \(1, 1\) and dtype int64: give an integer for each of"),
        ([[1, 2]], [[0.0, 1.0]], r"segment_ids has shape \(1, 2\) and dtype float64: give an integer"),
    ],
)
def test_wrong_ids(ids, segment_ids, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny().forward(ids, segment_ids)
