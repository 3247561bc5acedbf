"""Which words may come, and how many."""

import numpy as np
import pytest
from test_decoding_state import CONFIGS, SMALL, random_model, random_source

from npformer.data import END, PAD, START, UNK
from npformer.decoding import CachedState, beam_search, greedy
from npformer.decoding.rules import (
    ROWS,
    best_word,
    best_words,
    check_source,
    forbidden_words,
    largest,
    log_sum_exp,
    next_log_probs,
    usual_limits,
    word_limits,
)
from npformer.errors import UserError
from npformer.functional import log_softmax
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


def logits_with_ties(seed=0, shape=(40, 11)):
    """Few different numbers, so that many are equal."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(float)


@pytest.mark.parametrize("n", [1, 3, 11])
def test_the_largest_are_those_of_a_stable_sort(n):
    x = logits_with_ties()
    x[0] = -np.inf
    expected = np.sort(np.argsort(-x, 1, kind="stable")[:, :n], 1)
    columns, values = largest(x.copy(), n)
    np.testing.assert_array_equal(columns[1:], expected[1:])
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


def test_best_words_are_those_of_the_log_probabilities():
    logits = logits_with_ties(1) * 3 + 100
    plain, _ = log_softmax(logits)
    found = best_words(logits.copy(), [PAD, UNK, START], 4, END)
    np.testing.assert_allclose(found.end, plain[:, END], rtol=1e-12)
    plain[:, [PAD, UNK, START]] = -np.inf
    expected = np.sort(np.argsort(-plain, 1, kind="stable")[:, :4], 1)
    np.testing.assert_array_equal(found.words, expected)
    np.testing.assert_allclose(found.log_probs, np.take_along_axis(plain, expected, 1), rtol=1e-12)
    np.testing.assert_array_equal(best_word(logits.copy(), [PAD, UNK, START]), plain.argmax(1))
    # the end may not come: it is not proposed, and keeps its probability for where nothing else may
    without = best_words(logits.copy(), [PAD, UNK, START, END], 4, END)
    assert END not in without.words
    np.testing.assert_array_equal(without.end, found.end)


def test_many_words_that_may_not_come():
    found = best_words(logits_with_ties(), [*range(9)], 5, END)
    np.testing.assert_array_equal(np.isfinite(found.log_probs).sum(1), 2)
    assert best_words(logits_with_ties(), [], 50, END).words.shape == (40, 11)


def test_log_sum_exp_needs_no_exp_of_the_numbers_themselves():
    x = np.random.default_rng(0).normal(size=(ROWS * 2 + 3, 50)) * 5
    np.testing.assert_allclose(log_sum_exp(x), np.log(np.exp(x).sum(1)), rtol=1e-13)
    np.testing.assert_allclose(log_sum_exp(x + 2000), log_sum_exp(x) + 2000, rtol=1e-13)
    low = log_sum_exp((x + 2000).astype(np.float32))
    assert low.dtype == np.float64
    np.testing.assert_allclose(low, log_sum_exp(x) + 2000, rtol=1e-6)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_one_row_that_is_not_finite(broken):
    logits = logits_with_ties()
    logits[-1, 7] = broken
    with np.errstate(invalid="ignore"):
        for choose in (lambda: best_word(logits, [PAD]), lambda: best_words(logits, [PAD], 3, END)):
            with pytest.raises(UserError, match="not finite"):
                choose()


def test_limits_of_each_sentence():
    source = np.array([[5, 6, END, PAD], [5, 6, 7, END]])
    np.testing.assert_array_equal(word_limits(CONFIG, source, [4, 9]), [4, 9])
    for limits, message in (
        ([4, 256], "max_length is 256: give 1 to 255"),
        ([0, 4], "max_length is 0"),
        ([4, 5, 6], "max_length holds 3 numbers: give one, or one for each of 2"),
    ):
        with pytest.raises(UserError, match=message):
            word_limits(CONFIG, source, limits)


def test_a_least_number_of_words():
    source = np.array([[5, 6, END, PAD], [5, 6, 7, END]])
    np.testing.assert_array_equal(word_limits(CONFIG, source, [4, 9], 4), [4, 9])
    for wrong in (-1, 5):
        with pytest.raises(UserError, match=f"min_length is {wrong}: give 0 to 4"):
            word_limits(CONFIG, source, [4, 9], wrong)


def test_usual_limits_have_room_for_a_translation():
    sources = [[5] * n + [END] for n in (0, 1, 12, 99)]
    np.testing.assert_array_equal(usual_limits(CONFIG, sources), [11, 13, 29, 160])
    np.testing.assert_array_equal(usual_limits(CONFIG.replace(max_length=20), sources), [11, 13, 19, 19])
