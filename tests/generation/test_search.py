"""The rules of search: allowed tokens, limits on the length, and the most probable tokens."""

import numpy as np
import pytest
from decoding_models import CONFIGS, SMALL, random_model, random_source

from npformer.data import END, PAD, START, UNK
from npformer.errors import UserError
from npformer.functional import log_softmax
from npformer.generation import beam_search, greedy
from npformer.generation.beam import RULES
from npformer.generation.search import (
    ROWS,
    NextTokens,
    best_token,
    best_tokens,
    forbidden_tokens,
    largest,
    length_limits,
    log_sum_exp,
)
from npformer.models.transformer import TransformerConfig

CONFIG = CONFIGS["paper-base"]


SOURCE = np.array([[5, 6, END, PAD], [5, 6, 7, END]])


@pytest.mark.parametrize(
    ("config", "limits", "expected"),
    [
        (CONFIG, (), [53, 54]),  # as in the paper
        (CONFIG.replace(max_length=30), (), [29, 29]),
        (CONFIG, (7,), [7, 7]),
        (CONFIG, (255,), [255, 255]),
        (CONFIG, ([4, 9],), [4, 9]),
        (CONFIG, ([4, 9], 4), [4, 9]),
    ],
)
def test_the_limits_of_each_sentence(config, limits, expected):
    np.testing.assert_array_equal(length_limits(config, SOURCE, *limits), expected)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((0,), "max_length is 0: give 1 to 255"),
        ((256,), "max_length is 256: give 1 to 255"),
        (([4, 256],), "max_length is 256: give 1 to 255"),
        (([4, 5, 6],), "max_length holds 3 numbers: give one, or one for each of 2"),
        (([4, 9], -1), "min_length is -1: it must be a whole number, 0 or more"),
        (([4, 9], 5), "min_length is 5: give 0 to 4"),
        (([4.5, 9],), r"max_length is \[4.5, 9\]: give a whole number, or one for each sentence"),
        (([[4], [4, 5]],), r"max_length is \[\[4\], \[4, 5\]\]: give a whole number"),
        (("4",), "max_length is '4': give a whole number"),
    ],
)
def test_impossible_limits_are_refused(limits, message):
    with pytest.raises(UserError, match=message):
        length_limits(CONFIG, SOURCE, *limits)
    with pytest.raises(UserError, match="max_length is 1"):  # a model without room for a token
        length_limits(CONFIG.replace(max_length=1), SOURCE)


def test_forbidden_tokens():
    assert forbidden_tokens(CONFIG) == [PAD, UNK, START]
    assert forbidden_tokens(CONFIG, allow_unk=True) == [PAD, START]
    for wrong in (11, -1, "fr", 1.5):
        with pytest.raises(UserError, match=f"forbidden has the id {wrong!r}: give ids from 0 to"):
            forbidden_tokens(CONFIG, forbidden=[wrong])
    # with this config the end symbol has the id that <UNK> has by default
    assert forbidden_tokens(CONFIG.replace(pad_id=0, start_id=2, end_id=1)) == [0, 2]


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_invalid_sources(search):
    model = random_model(CONFIG.replace(max_length=10))
    wrong = {
        "outside the vocabulary": [[5, 11, END]],
        "the model's limit is 10": [[5] * 11],
        r"source\[1\] contains only padding": [[5, END], [PAD, PAD]],
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


def logits_with_ties(seed=0, shape=(40, 11)):
    """Return logits with few different values, so that many are equal."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(float)


@pytest.mark.parametrize("n", [1, 3, 11])
def test_the_largest_are_those_of_a_stable_sort(n):
    x = logits_with_ties()
    x[0] = -np.inf
    expected = np.sort(np.argsort(-x, 1, kind="stable")[:, :n], 1)
    columns, values = largest(x.copy(), n)
    np.testing.assert_array_equal(columns[1:], expected[1:])
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


def test_best_tokens_are_those_of_the_log_probabilities():
    logits = logits_with_ties(1) * 3 + 100
    plain, _ = log_softmax(logits)
    found = best_tokens(logits.copy(), [PAD, UNK, START], 4, END)
    np.testing.assert_allclose(found.end, plain[:, END], rtol=1e-12)
    plain[:, [PAD, UNK, START]] = -np.inf
    expected = np.sort(np.argsort(-plain, 1, kind="stable")[:, :4], 1)
    np.testing.assert_array_equal(found.tokens, expected)
    np.testing.assert_allclose(found.log_probs, np.take_along_axis(plain, expected, 1), rtol=1e-12)
    np.testing.assert_array_equal(best_token(logits.copy(), [PAD, UNK, START]), plain.argmax(1))
    # a forbidden end symbol is not proposed, but its probability is still returned
    without = best_tokens(logits.copy(), [PAD, UNK, START, END], 4, END)
    assert END not in without.tokens
    np.testing.assert_array_equal(without.end, found.end)


def test_log_sum_exp_does_not_overflow():
    x = np.random.default_rng(0).normal(size=(ROWS * 2 + 3, 50)) * 5
    np.testing.assert_allclose(log_sum_exp(x), np.log(np.exp(x).sum(1)), rtol=1e-13)
    for shift in (2000, -2000, -60):  # exp overflows, is 0, or is small
        np.testing.assert_allclose(log_sum_exp(x + shift), log_sum_exp(x) + shift, rtol=1e-13)
    low = log_sum_exp((x + 2000).astype(np.float32))
    assert low.dtype == np.float64
    np.testing.assert_allclose(low, log_sum_exp(x) + 2000, rtol=1e-6)
    lowest = log_sum_exp((x - 100).astype(np.float32))  # exp(-100) is not 0 in float32, but has few digits
    np.testing.assert_allclose(lowest, log_sum_exp(x) - 100, rtol=1e-6)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_one_row_that_is_not_finite(broken):
    logits = logits_with_ties()
    logits[-1, 7] = broken
    with np.errstate(invalid="ignore"):
        for choose in (lambda: best_token(logits, [PAD]), lambda: best_tokens(logits, [PAD], 3, END)):
            with pytest.raises(UserError, match="not finite"):
                choose()


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("rules", ["paper", "transformers"])
def test_no_translation_has_the_same_tokens_twice(rules, n):
    """A beam that holds every sequence finds those without repetitions, the start symbol counted."""
    config = TransformerConfig(**(SMALL | {"source_vocab": 7, "target_vocab": 7}))
    model, source = random_model(config, sharpness=2.0), random_source(config, (3, 2))
    settings = {"max_length": 3, "forbidden": [PAD, UNK]}  # the start symbol may be chosen

    def repeats(ids):
        grams = [(START, *ids)[i : i + n] for i in range(len(ids) + 2 - n)]
        return len(set(grams)) < len(grams)

    search = settings | {"beam": 400, "rules": rules}
    everything = beam_search(model, source, **search)
    for found, kept in zip(
        beam_search(model, source, no_repeat_ngram_size=n, **search), everything, strict=True
    ):
        kept = [each for each in kept if not repeats(each.ids)]
        assert [each.ids for each in found] == [each.ids for each in kept]
        np.testing.assert_allclose([each.score for each in found], [each.score for each in kept])
    found = greedy(model, source, no_repeat_ngram_size=n, **settings)
    assert found == [
        each[0].ids for each in beam_search(model, source, beam=1, no_repeat_ngram_size=n, **settings)
    ]
    assert found != greedy(model, source, **settings)
    assert not any(map(repeats, found))


# The worst of the two best scores is log .18 / √2 = -1.2126. By default, the search of transformers ends when
# t log .6 / √t is below it, with "never" when t log .6 / √9 is, or √8 where the limit counts the end symbol.
ENDS = {"paper": (2, 5, 5), "transformers": (2, 6, 8), "transformers, unforced end": (2, 6, 7)}


@pytest.mark.parametrize(("rules", "expected"), ENDS.items())
def test_when_a_search_ends(rules, expected):
    log_probs = np.log([0.3, 0.6, 0.06, 0.04]).tolist()  # of the end symbol and of three words, at each step
    endings = (True, None), (True, 1), (False, None), ("never", None)  # True waits for `beam`, not for n_best
    for (ending, n_best), n_steps in zip(endings, (expected[0], *expected), strict=True):
        search = RULES[rules](END, 2, 0.5, 8, n_best, ending)
        while search.live:
            rows = len(search.live)
            search.advance(NextTokens([[END, 4, 5, 6]] * rows, [log_probs] * rows, log_probs[:1] * rows))
        assert (len(search.steps), len(search.finished)) == (n_steps, 2)
    for wrong in ("later", 1):
        with pytest.raises(UserError, match=f"early_stopping is {wrong!r}: it must be True, False"):
            beam_search(random_model(CONFIG), random_source(CONFIG), early_stopping=wrong)
