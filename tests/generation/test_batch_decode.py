"""Batch decoding: each sentence is translated as if it were alone, whatever the batches and threads."""

import itertools
import threading

import numpy as np
import pytest
from decoding_models import CONFIGS, model_with_bias, random_model
from hypothesis import given
from hypothesis import strategies as st

from npformer.data import END
from npformer.errors import UserError
from npformer.generation import batch_decode as module
from npformer.generation import beam_search, greedy, translate_ids
from npformer.generation.batch_decode import batches_by_length
from npformer.generation.search import usual_limits

CONFIG = CONFIGS["paper-base"]


def random_sources(n, seed=0, longest=9):
    """Return sentences of 1 to `longest` tokens and an end symbol, in random order."""
    rng = np.random.default_rng(seed)
    return [[*rng.integers(4, 11, rng.integers(1, longest + 1)).tolist(), END] for _ in range(n)]


def alone(model, ids, beam=1, **settings):
    """Translate one sentence, with the whole model at each step and without ending the search early."""
    limit = settings.pop("limit", min(model.config.max_length - 1, len(ids) * 3 // 2 + 10))
    settings = {"max_length": limit, "min_length": 1, "cached": False, **settings}
    if beam == 1:
        return greedy(model, np.array([ids]), **settings)[0]
    return beam_search(model, np.array([ids]), beam=beam, **settings)[0][0].ids


@pytest.mark.parametrize(
    ("config", "beam"), [(CONFIG, 1), *((config, 3) for config in CONFIGS.values())], ids=["greedy", *CONFIGS]
)
def test_each_sentence_is_translated_as_if_alone(config, beam):
    """A beam is wide and its translations are short; greedy translations have the usual limits."""
    model, sources = random_model(config, 3, sharpness=4.0), random_sources(7, longest=6)
    sources.insert(2, sources[0])
    most = {} if beam == 1 else {"max_length": 7}
    expected = [alone(model, ids, beam, **most) for ids in sources]
    for tokens, threads in ((40, 2), (5000, 1)):
        settings = {"beam": beam, "batch_tokens": tokens, "threads": threads, **most}
        assert translate_ids(model, sources, **settings) == expected


def test_empty_sentences_stay_empty():
    model, (one, two) = random_model(CONFIG), random_sources(2)
    expected = [[], alone(model, one), [], alone(model, two), []]
    for beam in (1, 2):
        found = translate_ids(model, [[], one, [END], two, [END]], beam=beam)
        assert [bool(ids) for ids in found] == [bool(ids) for ids in expected]
    assert translate_ids(model, [[], one, [END], two, [END]]) == expected
    assert translate_ids(model, [[END]]) == [[]]
    assert translate_ids(model, []) == []


def test_no_translation_is_empty():
    at_once, source = model_with_bias(token_3=900.0), random_sources(4)
    for beam in (1, 2, 5):
        assert [len(ids) for ids in translate_ids(at_once, source, beam=beam)] == [1] * 4


def test_a_translation_that_never_ends_is_cut():
    never = model_with_bias(token_3=-900.0)
    sources = [[5, END], [5, 6, 7, 8, 9, END]]
    for beam in (1, 3):
        settings = {"beam": beam, "length_penalty": 2.0}  # long translations have the best score
        assert [len(ids) for ids in translate_ids(never, sources, **settings)] == [13, 19]
        assert [len(ids) for ids in translate_ids(never, sources, max_length=4, **settings)] == [4, 4]
        assert [len(ids) for ids in translate_ids(never, sources, max_length=[7, 2], **settings)] == [7, 2]
    np.testing.assert_array_equal(usual_limits(CONFIG.replace(max_length=16), sources), [13, 15])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam": 0}, "beam is 0"),
        ({"beam": 2.0}, "beam is 2.0: it must be a whole number"),
        ({"bean": 4}, "unknown setting of the search 'bean': did you mean beam?"),
        ({"n_best": 1}, "unknown setting of the search 'n_best': choose one of beam, max_length, "),
        ({"cached": "no"}, "cached is 'no': it must be true or false"),
        ({"min_length": "4"}, "min_length is '4': it must be a whole number"),
        ({"threads": 0}, "threads is 0"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"max_length": 0}, "max_length is 0: give 1 to 255"),
        ({"max_length": [3, 4, 5]}, "max_length holds 3 numbers: give one, or one for each of 2"),
        ({"begin": [[5]]}, "begin has 1 list of ids: give one for each sentence"),
        ({"rules": "nonsense"}, "rules is 'nonsense': choose one of paper, transformers"),
        ({"forced_bos": 99}, "forced_bos has the id 99: give ids from 0 to"),
        ({"beam": 2, "length_penalty": -1.0}, "length_penalty is -1"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(UserError, match=message):
        translate_ids(random_model(CONFIG), random_sources(2), **settings)


def test_an_error_in_a_thread_is_raised_in_the_caller(monkeypatch):
    model, begun = random_model(CONFIG), []

    def failing(model, source, **settings):
        begun.append(len(source))
        raise UserError("broken")

    monkeypatch.setattr(module, "greedy", failing)
    with pytest.raises(UserError, match="broken"):
        translate_ids(model, random_sources(200), batch_tokens=1, threads=2)
    assert len(begun) < 200  # the remaining batches were not started
    with pytest.raises(UserError, match="outside the vocabulary"):
        translate_ids(model, [[5, END], [99, END]], beam=2)


@given(st.lists(st.integers(0, 12)), st.integers(1, 40))
def test_batches(lengths, batch_tokens):
    sources = [[5] * n + [END] for n in lengths]
    batches = batches_by_length(sources, batch_tokens)
    filled = [index for index, n in enumerate(lengths) if n]
    assert sorted(itertools.chain(*batches)) == filled  # each sentence once
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(len(sources[index]) for index in batch) <= batch_tokens
    in_order = [lengths[index] for batch in batches for index in batch]
    assert in_order == sorted(in_order, reverse=True)
    # no two adjacent batches would fit into one
    for one, two in itertools.pairwise(batches):
        assert (len(one) + 1) * len(sources[one[0]]) > batch_tokens, two


def test_threads_work_at_the_same_time(monkeypatch):
    """Two batches wait for each other at a barrier, which a single thread would never pass."""
    meeting = threading.Barrier(2, timeout=120)  # only guards against waiting forever

    def greedy_after_meeting(*arguments, **settings):
        meeting.wait()
        return greedy(*arguments, **settings)

    monkeypatch.setattr(module, "greedy", greedy_after_meeting)
    sources = random_sources(6, longest=1)  # in two batches
    assert len(translate_ids(random_model(CONFIG), sources, batch_tokens=6, threads=2)) == 6
