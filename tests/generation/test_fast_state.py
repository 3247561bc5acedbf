"""FastState: the same logits as CachedState, for every Transformer that it accepts."""

import numpy as np
import pytest
import strict_cupy
from decoding_models import (
    CONFIGS,
    SMALL,
    assert_same_walk,
    every_config,
    random_model,
    random_source,
)

from npformer.data import START
from npformer.errors import UserError
from npformer.generation import fast_state, greedy
from npformer.generation.fast_layers import suits
from npformer.generation.fast_state import FastState
from npformer.generation.state import CachedState, PrefixState, start
from npformer.kernels import plain_pairs
from npformer.models.transformer import TransformerConfig
from npformer.models.universal import UniversalConfig, UniversalTransformer
from npformer.nn import RMSNorm

# activations in the projections, or masks that add a large negative number
UNUSUAL = {"jianshu-demo", "datawhale", "paperspace", "queries before"}


def assert_suits(model, source):
    """Compare a FastState with a CachedState, on more steps than the first KV cache has room for."""
    assert suits(model)
    assert_same_walk(FastState(model, source), CachedState(model, source), 40)


@every_config
def test_the_logits_are_those_of_the_cached_state(config):
    model, source = random_model(config), random_source(config)
    if suits(model):
        assert_suits(model, source)
    assert isinstance(start(model, source), FastState if suits(model) else CachedState)


def test_most_configurations_suit():
    assert {name for name, config in CONFIGS.items() if not suits(random_model(config))} == UNUSUAL


def test_an_unusual_model_keeps_the_cached_state(monkeypatch):
    config, source = CONFIGS["paper-base"], random_source(CONFIGS["paper-base"])
    for norm in ("n-dna", "pre"):
        model = random_model(TransformerConfig(**(SMALL | {"norm": norm, "final_norm": True})))
        if norm == "pre":
            model.decoder[1].norm2 = RMSNorm(16, dtype=np.float64)
        assert isinstance(start(model, source), CachedState)
    relative = random_model(TransformerConfig(**(SMALL | {"positions": "relative"})))
    assert isinstance(start(relative, source), CachedState)
    assert isinstance(start(UniversalTransformer(UniversalConfig(**SMALL)), source), CachedState)
    assert isinstance(start(random_model(config), source, cached=False), PrefixState)
    on_gpu = random_model(config)
    strict_cupy.install(monkeypatch)
    on_gpu.to("cupy")
    assert not suits(on_gpu)


def test_plain_pairs_switch_it_off():
    config = CONFIGS["paper-base"]
    model, source = random_model(config), random_source(config)
    with plain_pairs():
        assert isinstance(start(model, source), CachedState)
        with plain_pairs():
            pass
        assert isinstance(start(model, source), CachedState)
        assert isinstance(start(model, source, cached=False), PrefixState)
        plain = greedy(model, source, max_length=8)
    assert isinstance(start(model, source), FastState)
    assert greedy(model, source, max_length=8) == plain


def test_the_memory_is_stored_once_for_each_sentence_that_is_translated():
    config = CONFIGS["paper-base"]
    state = FastState(random_model(config), random_source(config))
    assert state.memory.mask is not None  # there is padding
    state.decode_step(np.full(6, START))
    state.select(np.array([4, 4, 1, 0, 2, 5]))  # 5 of 6 sentences
    assert len(state.memory.sentences) == 6
    state.select(np.array([0, 1, 4]))
    np.testing.assert_array_equal(state.sentence, [4, 4, 2])
    np.testing.assert_array_equal(state.memory.sentences, [2, 4])
    assert state.memory.mask is None  # both have 8 tokens
    assert len(state.memory.layers[0].k) == 2


def test_rows_that_stay_are_not_moved():
    config = CONFIGS["paper-base"]
    state = FastState(random_model(config), random_source(config))
    state.decode_step(np.full(6, START))
    before = state.kv_cache.array
    expected = before[:, [0, 2, 1, 3], :1]
    state.select(np.array([0, 2, 1, 3]))
    assert np.shares_memory(state.kv_cache.array, before)
    np.testing.assert_array_equal(state.kv_cache.array[:, :, :1], expected)


def test_a_sentence_that_becomes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(fast_state, "CAPACITY", 1)
    config = TransformerConfig(**(SMALL | {"max_length": 3}))
    state = FastState(random_model(config), random_source(config, (2, 1)))
    for _ in range(3):
        state.decode_step(np.full(2, 5))
    with pytest.raises(UserError, match="target is 4 tokens long and the model's limit is 3"):
        state.decode_step(np.full(2, 5))
