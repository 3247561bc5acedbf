"""The decoding states: a KV cache gives the same logits as running the whole model at each step."""

import numpy as np
from decoding_models import CONFIGS, assert_same_walk, every_config, random_model, random_source

from npformer.data import START
from npformer.generation.state import CachedState, PrefixState


@every_config
def test_cached_logits_are_those_of_the_whole_model(config):
    model, source = random_model(config), random_source(config)
    assert_same_walk(CachedState(model, source), PrefixState(model, source), 9)


def test_rows_know_the_sentence_they_belong_to():
    config = CONFIGS["paper-base"]
    model, source = random_model(config), random_source(config)
    for state in (CachedState(model, source), PrefixState(model, source)):
        state.decode_step(np.full(6, START))
        state.select(np.array([4, 4, 1, 0]))
        np.testing.assert_array_equal(state.sentence, [4, 4, 1, 0])
        state.decode_step(np.array([5, 6, 7, 8]))
        state.select(np.array([1, 3]))
        np.testing.assert_array_equal(state.sentence, [4, 0])
