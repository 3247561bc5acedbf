"""Which words may come, and how many."""

import numpy as np
import pytest
from test_decoding_state import CONFIGS, SMALL, random_model, random_source

from npformer.data import END, PAD, START, UNK
from npformer.decoding import CachedState, beam_search, greedy
from npformer.decoding.rules import check_source, forbidden_words, next_log_probs, word_limits
from npformer.errors import UserError
from npformer.transformer import TransformerConfig

CONFIG = CONFIGS["paper-base"]


def test_limits_are_the_papers():
    source = np.array([[5, 6, END, PAD], [5, 6, 7, END]])
    np.testing.assert_array_equal(word_limits(CONFIG, source), [53, 54])
    np.testing.assert_array_equal(word_limits(CONFIG.replace(max_length=30), source), [29, 29])
    np.testing.assert_array_equal(word_limits(CONFIG, source, 7), [7, 7])
    np.testing.assert_array_equal(word_limits(CONFIG, source, 255), [255, 255])


@pytest.mark.parametrize("max_length", [0, -3, 256])
def test_limits_that_cannot_be(max_length):
    with pytest.raises(UserError, match=f"max_length is {max_length}: give 1 to 255"):
        word_limits(CONFIG, np.array([[5, END]]), max_length)


def test_a_model_without_room():
    with pytest.raises(UserError, match="max_length is 1"):
        word_limits(CONFIG.replace(max_length=1), np.array([[END]]))


def test_forbidden_words():
    assert forbidden_words(CONFIG) == [PAD, UNK, START]
    assert forbidden_words(CONFIG, allow_unk=True) == [PAD, START]
    # ids of someone's own: the end has the number that is <UNK> elsewhere
    assert forbidden_words(CONFIG.replace(pad_id=0, start_id=2, end_id=1)) == [0, 2]


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_sources_that_cannot_be(search):
    model = random_model(CONFIG.replace(max_length=10))
    wrong = {
        "outside the vocabulary": [[5, 11, END]],
        "the model's limit is 10": [[5] * 11],
        r"source\[1\] is padding throughout": [[5, END], [PAD, PAD]],
        "give integers": [[5.0, 3.0]],
        r"shape \(3,\)": [5, 6, END],
    }
    for message, source in wrong.items():
        with pytest.raises(UserError, match=message):
            search(model, np.array(source))
    for shape in ((2, 0), (0, 4)):
        with pytest.raises(UserError, match="at least one sentence, of at least one token"):
            search(model, np.empty(shape, int))
    with pytest.raises(UserError, match="max_length is 10"):
        search(model, np.array([[5, END]]), max_length=10)


def test_a_list_is_an_array():
    model = random_model(CONFIG)
    source = random_source(CONFIG, (4, 4))
    assert greedy(model, source.tolist()) == greedy(model, source)
    np.testing.assert_array_equal(check_source(CONFIG, source.tolist()), source)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_diverged_model_is_named(broken):
    config = TransformerConfig(tied="none", output_bias=True, **SMALL)
    model = random_model(config)
    model.output.bias.value[9] = broken
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(UserError, match="logits are not finite: its training diverged"),
    ):
        greedy(model, random_source(config))


def test_log_probs_are_the_models_own():
    model, source = random_model(CONFIG), random_source(CONFIG)
    words = np.full(len(source), START)
    log_probs = next_log_probs(CachedState(model, source), words, [PAD, UNK, START])
    logits, _ = model.forward(source, words[:, None])
    expected = logits[:, 0] - np.log(np.exp(logits[:, 0]).sum(-1, keepdims=True))
    np.testing.assert_allclose(log_probs[:, END:], expected[:, END:], rtol=0, atol=1e-11)
    assert np.isneginf(log_probs[:, [PAD, UNK, START]]).all()
