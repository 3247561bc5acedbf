"""Scores of given translations: the numbers of a forward pass of each sentence alone, and alignments."""

import numpy as np
import pytest
from decoding_models import CONFIGS, every_config, random_model

from npformer.data import END
from npformer.errors import UserError
from npformer.functional.softmax import log_softmax
from npformer.generation import beam_search
from npformer.generation.scoring import aligned, score_ids
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.models.registry import attention_arrays

LENGTHS = [(5, 3), (1, 8), (8, 1), (3, 0), (2, 6)]  # of sources and targets, without their ends


def random_pairs(count=1, seed=0):
    """Return sources and targets with their end symbols."""
    rng = np.random.default_rng(seed)
    pairs = [[[*rng.integers(4, 11, n).tolist(), END] for n in pair] for pair in LENGTHS * count]
    return [source for source, _ in pairs], [target for _, target in pairs]


def alone(model, source, target):
    """Return the log-probabilities and the mean attention weights of a pair, without padding."""
    target_in = np.array([[model.config.start_id, *target[:-1]]])
    logits, cache = model.forward(np.array([source]), target_in)
    log_p, _ = log_softmax(logits[0].astype(np.float64))
    return log_p[range(len(target)), target], attention_arrays(cache)["cross"].mean((0, 2))[0]  # (T, S)


@every_config
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-5)])
def test_scores_are_those_of_a_forward_pass(config, dtype, tolerance):
    model = random_model(config, sharpness=2.0)
    model.astype(dtype)
    sources, targets = random_pairs()
    found = score_ids(model, sources, targets)
    for source, target, scores in zip(sources, targets, found, strict=True):
        expected, weights = alone(model, source, target)
        np.testing.assert_allclose(scores.log_probs, expected, atol=tolerance, rtol=tolerance)
        assert scores.alignment == [*weights[:-1, :-1].argmax(-1), len(source) - 1]


def test_scores_add_up_to_the_log_probability_of_beam_search():
    model = random_model(CONFIGS["tensor2tensor"], sharpness=3.0)
    sources, _ = random_pairs()
    for source in sources:
        (found,) = beam_search(model, [source], max_length=8)
        scores = score_ids(model, [source] * len(found), [[*each.ids, END] for each in found])
        totals = [sum(each.log_probs) for each in scores]
        np.testing.assert_allclose(totals, [each.log_prob for each in found], atol=1e-10)


def test_a_token_is_aligned_with_the_word_to_which_it_attends_most():
    weights = np.array([[0.1, 0.7, 0.2], [0.3, 0.2, 0.5], [0.6, 0.3, 0.1]])
    assert aligned(weights) == [1, 0, 2]  # the end symbols belong together, and to no other token
    assert aligned(weights[2:]) == [2]  # an empty translation


def test_a_model_without_attention_has_no_alignment():
    sizes = {"d_model": 8, "d_hidden": 8, "source_vocab": 11, "target_vocab": 11}
    for attention, has_alignment in (("none", False), ("additive", True)):
        model = RecurrentTranslator(
            RecurrentConfig(attention=attention, **sizes), rng=np.random.default_rng(0)
        )
        (scores,) = score_ids(model, [[5, 6, END]], [[7, END]])
        assert (scores.alignment is not None) == has_alignment
        assert len(scores.log_probs) == 2


def test_what_cannot_be_scored_is_refused():
    model = random_model(CONFIGS["paper-base"])
    for sources, targets, message in (
        ([[5, END], [END]], [[5, END], [END]], r"sources\[1\] is empty: give at least one token before the"),
        ([[END]], [[5, 6, END]], r"sources\[0\] is empty"),
        ([[5, END]], [[]], r"targets\[0\] is empty: give at least the end symbol"),
        ([[5, END]], [], "there are 1 source and 0 targets: give one target for each source"),
        ([[5, END]], [[99, END]], "outside the vocabulary"),
    ):
        with pytest.raises(UserError, match=message):
            score_ids(model, sources, targets)
