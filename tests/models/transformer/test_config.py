"""TransformerConfig refuses impossible settings with a clear message, and the presets are as described."""

import math

import numpy as np
import pytest
from tiny import tiny_batch, tiny_config, tiny_model

from npformer import Transformer, TransformerConfig, UserError
from npformer.models.transformer import ARCHITECTURES

NEVER = {
    "a choice": ({"norm": "batch"}, "norm is 'batch': choose one of post, pre"),
    "a layout": ({"positions": "sines"}, "positions is 'sines': choose one of interleaved, halves"),
    "a tie": ({"tied": "source"}, "tied is 'source': choose one of none, output, all"),
    "an activation": ({"activation": "tanh"}, "activation is 'tanh': choose one of none, relu, gelu"),
    "a projection": ({"projection_activation": "x"}, "projection_activation is 'x': choose one of none"),
    "a way to mask": ({"masking_how": "multiply"}, "masking_how is 'multiply': choose one of replace, add"),
    "a query mask": ({"query_masking": "during"}, "query_masking is 'during': choose one of none, after"),
    "no value width": ({"d_value": -1}, "d_value is -1: it must be a whole number"),
    "all dropped": ({"dropout": 1.0}, "dropout is 1.0: it must be at least 0 and below 1"),
    "input dropped": ({"embedding_dropout": 1.5}, "embedding_dropout is 1.5: it must be at least 0"),
    "negative": ({"attention_dropout": -0.1}, "attention_dropout is -0.1: it must be at least 0"),
    "not a number": (
        {"feed_forward_dropout": math.nan},
        "feed_forward_dropout is nan: it must be at least 0",
    ),
    "all smoothed": ({"label_smoothing": 1}, "label_smoothing is 1: it must be at least 0"),
    "no eps": ({"norm_eps": 0}, "norm_eps is 0: it must be a number above 0"),
    "an eps that is not a number": ({"norm_eps": "1"}, "norm_eps is '1': it must be a number above 0"),
    "a fill of infinity": ({"mask_fill": math.inf}, "mask_fill is inf: give -inf, or a number far below 0"),
    "a fill that is not a number": (
        {"mask_fill": None},
        "mask_fill is None: give -inf, or a number far below",
    ),
    "heads": ({"n_heads": 3}, "d_model 8 is not divisible by n_heads 3: change one, or give d_head"),
    "odd": ({"d_model": 9, "n_heads": 3}, "'interleaved' pair sines with cosines, and d_model 9 is odd"),
    "odd halves": ({"d_model": 9, "n_heads": 3, "positions": "halves"}, "'halves' pair sines with cosines"),
    "odd, of Marian": ({"d_model": 9, "n_heads": 3, "positions": "marian"}, "'marian' pair sines with"),
    "odd, rotary": (
        {"positions": "rotary", "d_head": 3},
        "rotate pairs of numbers, and d_head is 3: make it",
    ),
    "two languages": ({"tied": "all"}, "shares one table between vocabularies of 11 and 9 tokens"),
    "no output": ({"attention_output": False, "d_value": 3}, "2 × 3 = 6 wide, are added to the residual, 8"),
    "bare top": ({"norm": "pre"}, "norm='pre' leaves the top of each stack unnormalized"),
    "undone": ({"query_masking": "before"}, "query_masking='before' gives masked queries equal weights"),
    "distances and numbers": (
        {"positions": "relative", "mask_fill": -1e9},
        "positions='relative' take exact masks, and mask_fill is -1000000000.0: leave out mask_fill",
    ),
    "adding infinity": ({"masking_how": "add"}, "masking_how='add' with a mask_fill of -inf is"),
    "padding that ends": ({"pad_id": 3}, r"pad_id, start_id and end_id are \(3, 2, 3\): end_id must differ"),
    "a start that ends": ({"start_id": 3}, r"are \(0, 3, 3\): end_id must differ from both others"),
    "a negative id": ({"pad_id": -1}, "pad_id is -1: it must be a whole number, 0 or more"),
    "an id too large": ({"end_id": 9}, r"are \(0, 2, 9\): end_id must differ .* all must lie inside both"),
}


@pytest.mark.parametrize(("changes", "sentence"), NEVER.values(), ids=NEVER)
def test_impossible_settings_are_refused(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny_config(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_heads": 3, "d_head": 5},
        {"d_model": 9, "n_heads": 3, "positions": "learned"},
        {"d_model": 9, "n_heads": 3, "positions": "none"},
        {"d_model": 9, "n_heads": 3, "positions": "rotary", "d_head": 2},
        {"tied": "all", "source_vocab": 9},
        {"attention_output": False, "d_head": 3, "d_value": 4},
        {"norm": "pre", "final_norm": True},
        {"query_masking": "before", "mask_fill": -1e9},
        {"masking_how": "add", "mask_fill": -1e9},
        {"embedding_dropout": 0.9},
        {"pad_id": 3, "end_id": 0},
    ],
)
def test_nearby_possible_settings_are_accepted(changes):
    """A model with these settings runs."""
    source, target_in, _ = tiny_batch()
    logits, _ = Transformer(tiny_config(**changes)).forward(source % 9, target_in)
    assert np.isfinite(logits).all()


def test_an_unknown_setting_is_refused():
    with pytest.raises(UserError, match="a TransformerConfig has no setting 'd_modle': it has activation,"):
        tiny_config().replace(d_modle=3)


def test_default_widths_are_derived_from_others():
    config = tiny_config(d_head=5, dropout=0.2)
    assert (config.head_key, config.head_value, config.input_dropout) == (5, 5, 0.2)
    config = tiny_config(d_value=3, embedding_dropout=0.0, dropout=0.2)
    assert (config.head_key, config.head_value, config.input_dropout) == (4, 3, 0.0)


@pytest.mark.parametrize("query", ["none", "after", "before"])
def test_masked_queries_are_set_to_0_afterwards_unless_they_are_masked_before(query):
    masking = tiny_config(query_masking=query, mask_fill=-1e9).masking
    assert masking.query == ("before" if query == "before" else "after")


CHANGES = [
    {"norm": "pre"},
    {"norm_eps": 0.1},
    {"activation": "gelu"},
    {"positions": "halves"},
    {"positions": "rotary"},
    {"scale_embedding": False},
    {"zero_padding": True},
    {"tied": "output"},
    {"projection_activation": "relu"},
    {"scale_scores": False},
    {"mask_fill": 0.0},
    {"mask_fill": -3.0, "masking_how": "add"},
    {"query_masking": "after"},
    {"attention_output": False},
    {"d_head": 3},
    {"d_value": 3},
    {"n_heads": 4},
    {"pad_id": 5},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_every_setting_has_an_effect(changes):
    """The setting changes the logits of a model with the same seed."""
    source, target_in, _ = tiny_batch()
    one, other = (tiny_model(final_norm=True, **settings) for settings in ({}, changes))
    assert np.abs(one.forward(source, target_in)[0] - other.forward(source, target_in)[0]).max() > 1e-3


# --- presets ---

SMALL = {
    "source_vocab": 9,
    "target_vocab": 9,
    "d_model": 32,
    "d_ff": 16,
    "d_head": 4,
    "d_value": 4,
    "n_heads": 8,
    "n_layers": 1,
}


@pytest.mark.parametrize("name", ARCHITECTURES.names())
def test_every_preset_constructs(name):
    """A small model of its kind runs forward and backward."""
    assert isinstance(TransformerConfig.architecture(name), TransformerConfig)
    model = Transformer(TransformerConfig.architecture(name, **SMALL))
    source, target_in, _ = tiny_batch()
    logits, cache = model.forward(source % 9, target_in, train=True, rng=np.random.default_rng(0))
    model.backward(np.ones_like(logits), cache)
    assert np.isfinite(model.grads).all()
    assert model.grads.dtype == np.float32


def test_the_error_for_an_unknown_preset_names_the_nearest():
    with pytest.raises(UserError, match=r"unknown architecture 'paper-bse': did you mean paper-base\?"):
        TransformerConfig.architecture("paper-bse")
    with pytest.raises(UserError, match=r"unknown architecture 'zzz': choose one of .*paper-big"):
        TransformerConfig.architecture("zzz")


# the settings in which the documents differ
CHOICES = ("norm", "positions", "projection_activation", "attention_output", "scale_scores")
CHOICES += ("masking_how", "mask_fill", "query_masking", "norm_eps", "attention_dropout", "dropout")
DOCUMENTS = {
    "jianshu-demo": "post learned relu False True replace -4294967295.0 after 1e-08 0.1 0.0",
    "datawhale": "post interleaved none True True replace -10000000000.0 none 1e-05 0.1 0.1",
    "tensor2tensor": "pre halves none True False replace -inf none 1e-05 0.1 0.1",
    "paperspace": "post interleaved none True True add -1000000000.0 none 1e-06 0.0 0.1",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_preset_of_a_document_has_its_choices(name):
    config = TransformerConfig.architecture(name)
    assert " ".join(str(getattr(config, choice)) for choice in CHOICES) == DOCUMENTS[name]


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        ({}, 0),
        ({"positions": "learned"}, 12 * 8),  # one of the two tables of positions
        ({"tied": "all", "target_vocab": 11}, 0),
        ({"d_head": 3, "d_value": 5}, 0),
        # each layer has tables of keys and of values, and only one of an encoder layer counts, without 0
        ({"positions": "relative", "max_distance": 3}, 4 * 2 * 7 * 4 - 2 * 6 * 4),
    ],
    ids=["default", "learned positions", "tied", "widths of a head", "relative positions"],
)
def test_the_least_number_of_parameters_counts_the_matrices_but_those_of_outputs(changes, left_out):
    """A file whose settings need more numbers than it holds is refused before the model is built."""
    config = tiny_config(**changes)
    matrices = ((name, p) for name, p in Transformer(config).named_parameters() if p.value.ndim > 1)
    counted = sum(p.value.size for name, p in matrices if not name.endswith("output.weight"))
    assert config.least_parameters == counted - left_out
