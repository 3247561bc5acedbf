"""Translations that begin with given tokens: greedy search and beam search, in batches and alone."""

import numpy as np
import pytest
from decoding_models import CONFIGS, SMALL, every_config, random_model, random_source

from npformer.data import END, PAD, START, UNK
from npformer.errors import UserError
from npformer.generation import beam_search, greedy
from npformer.models.transformer import TransformerConfig

BEGIN = [[7, 4], [], [5], [9, 9, 9, 8], [6], []]  # of the six sentences of random_source


def by_hand(model, sentence, begin, max_length):
    """Return the greedy translation of one sentence after its beginning, by runs of the whole model."""
    ids = list(begin)
    never = [model.config.pad_id, model.config.start_id, UNK]
    never = [token for token in never if token != model.config.end_id]
    while len(ids) < max_length:
        logits, _ = model.forward(sentence[None], np.array([[model.config.start_id, *ids]]))
        logits[0, -1, never] = -np.inf
        token = int(logits[0, -1].argmax())
        if token == model.config.end_id:
            break
        ids.append(token)
    return ids


@every_config
def test_greedy_search_continues_the_beginnings(config):
    model, source = random_model(config), random_source(config)
    expected = [by_hand(model, row[row != PAD], begin, 8) for row, begin in zip(source, BEGIN, strict=True)]
    assert expected != greedy(model, source, max_length=8)
    for cached in (True, False):
        assert greedy(model, source, max_length=8, begin=BEGIN, cached=cached) == expected
    found = beam_search(model, source, beam=1, max_length=8, begin=BEGIN)
    assert [each[0].ids for each in found] == expected


@pytest.mark.parametrize("rules", ["paper", "transformers"])
@pytest.mark.parametrize("renormalize", [False, True])
def test_beam_search_finds_all_translations_that_begin_so(rules, renormalize):
    """A beam that holds every sequence finds those of a search without a beginning, and their scores."""
    config = TransformerConfig(**(SMALL | {"source_vocab": 8, "target_vocab": 8}))  # four tokens: 4 to 7
    model, source = random_model(config, sharpness=2.0), random_source(config, (3, 2))
    settings = {"beam": 400, "max_length": 3, "rules": rules, "renormalize": renormalize}
    begin = [[6, 4], [5]]
    everything = beam_search(model, source, **settings)
    for found, all_found, ids in zip(
        beam_search(model, source, begin=begin, **settings), everything, begin, strict=True
    ):
        expected = [each for each in all_found if each.ids[: len(ids)] == ids]
        assert len(expected) == sum(4**n for n in range(4 - len(ids)))
        assert [each.ids for each in found] == [each.ids for each in expected]
        for name in ("log_prob", "score"):
            numbers = [[getattr(each, name) for each in side] for side in (found, expected)]
            np.testing.assert_allclose(*numbers, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"begin": [[5]]}, "begin has 1 list of ids: give one for each sentence"),
        ({"begin": [[5]] * 3}, "begin has 3 lists of ids: give one for each sentence"),
        ({"begin": [5, 6]}, r"begin is \[5, 6\]: give a list of ids for each sentence"),
        ({"begin": [[5] * 5, []]}, "begin has 5 tokens, and this translation has 4 at most: give a shorter"),
        ({"begin": [[5, 11], []]}, "begin has the id 11, which a translation cannot have: leave it out"),
        *(({"begin": [[], [token]]}, f"begin has the id {token}, which") for token in (PAD, UNK, START, END)),
        *(({"forced_bos": token}, f"forced_bos is {token}, which") for token in (PAD, UNK, START, END)),
    ],
)
def test_beginnings_that_are_refused(settings, words):
    model, source = random_model(CONFIGS["paper-base"]), random_source(CONFIGS["paper-base"], (3, 2))
    for search in (greedy, beam_search):
        with pytest.raises(UserError, match=words):
            search(model, source, max_length=4, **settings)
