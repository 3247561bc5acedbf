"""Settings of BERT, DistilBERT and Marian: the way there and back, and what is refused with a sentence."""

import json

import pytest
from refused import refused

from npformer.interop.export import checked_settings
from npformer.interop.families.bert import BERT
from npformer.interop.families.distilbert import DISTILBERT
from npformer.interop.families.marian import MARIAN
from npformer.interop.generation_file import search_settings
from npformer.interop.settings_file import Settings
from npformer.models.bert import BertConfig
from npformer.models.transformer import TransformerConfig

# a small configuration of each family, in which every setting that a file can say differs from its default
SIZES = {"d_model": 12, "n_layers": 3, "n_heads": 2, "d_ff": 5, "max_length": 7, "pad_id": 1}
SIZES |= {"dropout": 0.2, "attention_dropout": 0.3}
CONFIGS = {
    "bert": BertConfig(vocab_size=9, n_segments=3, activation="relu", norm_eps=1e-5, **SIZES),
    "distilbert": BertConfig(vocab_size=9, n_segments=0, activation="swish", **SIZES),
    "marian": TransformerConfig(
        source_vocab=9,
        target_vocab=8,
        decoder_layers=2,
        activation="gelu_tanh",
        positions="marian",
        scale_embedding=True,
        tied="output",
        output_bias=True,
        feed_forward_dropout=0.4,
        label_smoothing=0.0,
        fused_projections=True,
        start_id=1,
        end_id=2,
        **SIZES,
    ),
}
FAMILIES = {family.name: family for family in (BERT, DISTILBERT, MARIAN)}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_comes_back_from_its_settings(name):
    settings = checked_settings(CONFIGS[name], FAMILIES[name])
    assert settings["model_type"] == name
    assert FAMILIES[name].config_of(Settings(json.loads(json.dumps(settings)))) == CONFIGS[name]


# a translator that was trained here may have separate projections, and an output of its own
SEPARATE = {"fused_projections": False, "tied": "none", "output_bias": False}


@pytest.mark.parametrize(
    ("name", "config"), [*CONFIGS.items(), ("marian", CONFIGS["marian"].replace(**SEPARATE))]
)
def test_the_rows_are_the_parameters(name, config):
    family = FAMILIES[name]
    parameters = {name: parameter.shape for name, parameter in family.model(config).named_parameters()}
    assert {row.ours: row.shape for row in family.rows(config)} == parameters


UNTIED = {"tie_word_embeddings": False}
REFUSED = [
    ("bert", {"is_decoder": True}, "is_decoder is true in config.json, and npformer supports"),
    ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is"),
    ("bert", UNTIED, "tie_word_embeddings is false"),
    ("bert", {"hidden_act": "mish"}, "hidden_act is 'mish' in config.json, and npformer"),
    ("distilbert", UNTIED, "tie_word_embeddings is false"),
    ("distilbert", {"n_heads": 5}, "d_model 12 is not divisible by n_heads 5"),
    (
        "marian",
        {"decoder_ffn_dim": 9},
        "encoder_ffn_dim is 5 and decoder_ffn_dim is 9 in .*supports only equal values",
    ),
    ("marian", UNTIED | {"share_encoder_decoder_embeddings": True}, "tie_word_embeddings is false"),
    ("marian", {"decoder_start_token_id": 2}, r"are \(1, 2, 2\): end_id must differ"),
    ("marian", {"eos_token_id": [2, 3]}, r"eos_token_id is \[2, 3\] in config.json: it must"),
    ("marian", {"max_position_embeddings": 10**12}, "is 1000000000000 in .*, and npformer makes a table"),
]


@pytest.mark.parametrize(("name", "changes", "sentence"), REFUSED)
def test_what_a_file_asks_for_and_our_model_does_not_have(name, changes, sentence):
    family = FAMILIES[name]
    with refused(sentence):
        family.config_of(Settings(family.settings_of(CONFIGS[name]) | changes))


PRE_NORM = {"norm": "pre", "final_norm": True}
UNWRITABLE = [
    ("bert", {"n_segments": 0}, "the model has no segments, and BERT has them: write it as a"),
    ("distilbert", {"n_segments": 1}, "n_segments of the model is 1, and in a distilbert it is 0"),
    ("distilbert", {"norm_eps": 1e-5}, "norm_eps of the model is 1e-05, and in a distilbert it is 1e-12"),
    ("marian", PRE_NORM, "norm of the model is 'pre', and in a marian it is 'post'"),
    (
        "marian",
        {"positions": "interleaved"},
        "positions of the model is 'interleaved', and in a marian it is",
    ),
]


@pytest.mark.parametrize(("name", "changes", "sentence"), UNWRITABLE)
def test_what_our_model_has_and_the_family_does_not(name, changes, sentence):
    with refused(sentence):
        checked_settings(CONFIGS[name].replace(**changes), FAMILIES[name])


# --- The settings of a search ---

OPUS_MT = {"bad_words_ids": [[1]], "forced_eos_token_id": 2, "max_length": 512, "num_beams": 6}
OPUS_MT |= {"renormalize_logits": True, "decoder_start_token_id": 1, "eos_token_id": [2]}


def search_of(tmp_path, settings, file="generation_config.json"):
    """Return the keywords of our search for the settings in a file."""
    (tmp_path / file).write_text(json.dumps(settings))
    return search_settings(tmp_path, CONFIGS["marian"])


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
def test_the_search_of_a_published_translator(tmp_path, file):
    assert search_of(tmp_path, OPUS_MT, file) == {
        "beam": 6,
        "length_penalty": 1.0,
        "max_length": 6,  # the model holds 7 tokens, the start symbol included
        "min_length": 0,
        "forbidden": [1],
        "forced_bos": None,
        "rules": "transformers",
        "renormalize": True,
        "no_repeat_ngram_size": 0,
        "early_stopping": False,
    }


@pytest.mark.parametrize(
    ("changes", "most", "least"),
    [
        ({"max_length": 5, "min_length": 3}, 3, 2),
        ({"max_length": 5, "max_new_tokens": 5, "min_length": 1, "min_new_tokens": 3}, 4, 3),
        ({}, 6, 0),  # 20 new tokens, of which the model holds 7
    ],
)
def test_lengths_count_the_start_symbol_and_the_end_symbol(tmp_path, changes, most, least):
    found = search_of(tmp_path, changes)
    assert (found["max_length"], found["min_length"]) == (most, least)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"repetition_penalty": 1.5}, "repetition_penalty is 1.5 in generation_config.json"),
        ({"early_stopping": "soon"}, "early_stopping is 'soon' in generation_config.json"),
        ({"encoder_no_repeat_ngram_size": 3}, "encoder_no_repeat_ngram_size is 3"),
        ({"do_sample": True}, "do_sample is true"),
        ({"bad_words_ids": [[1], [3, 4]]}, "bad_words_ids is"),
        ({"forced_eos_token_id": 3}, "forced_eos_token_id is 3"),
        ({"max_length": 2}, "max_length is 2 in generation_config.json .* make it larger"),
        ({"max_new_tokens": 1}, "max_new_tokens is 1 in generation_config.json .* make it larger"),
        (
            {"suppress_tokens": [3]},
            r"suppress_tokens is \[3\] in generation_config.json .* remove the setting",
        ),
        ({"sequence_bias": [[[1], 2.0]]}, "sequence_bias is"),
        ({"decoder_start_token_id": 5}, "decoder_start_token_id is 5 in .* supports only 1"),
        ({"eos_token_id": 4}, "eos_token_id is 4 in .* supports only 2"),
        ({"eos_token_id": [2, 4]}, r"eos_token_id is \[2, 4\] in .* supports only 2"),
    ],
)
def test_searches_that_npformer_does_not_have(tmp_path, changes, sentence):
    with refused(sentence):
        search_of(tmp_path, OPUS_MT | changes)
