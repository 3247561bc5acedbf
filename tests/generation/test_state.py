"""The decoding states: a KV cache gives the same logits as running the whole model at each step."""

import numpy as np
import strict_cupy
from decoding_models import CONFIGS, every_config, random_model, random_source
from tiny import tiny_model

from npformer.data import START
from npformer.generation.state import CachedState, PrefixState
from npformer.models.gpt import CausalLanguageModel


def walk(state, choices, moves):
    """Return the logits of every step, appending these tokens and selecting these rows after each."""
    logits = []
    for tokens, rows in zip(choices, moves, strict=True):
        logits.append(state.decode_step(tokens))
        state.select(rows)
    return logits


def random_walk(n_rows, n_steps, *, seed=0):
    """Return tokens to append, and rows to select that are reordered, repeated and dropped."""
    rng = np.random.default_rng(seed)
    choices, moves = [np.full(n_rows, START)], []
    for step in range(n_steps):
        before = len(choices[-1])
        after = [before + 2, before, before, max(1, before - 2)][step % 4]
        rows = rng.integers(0, before, after) if step % 4 else np.sort(rng.integers(0, before, after))
        moves.append(rows)
        choices.append(rng.integers(4, 11, after))
    return choices[:-1], moves


@every_config
def test_cached_logits_are_those_of_the_whole_model(config):
    model, source = random_model(config), random_source(config)
    choices, moves = random_walk(len(source), 9)
    cached = walk(CachedState(model, source), choices, moves)
    plain = walk(PrefixState(model, source), choices, moves)
    for left, right in zip(cached, plain, strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-12 * np.abs(right).max())


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


def test_the_source_is_copied_only_when_rows_change_their_sentence():
    config = CONFIGS["paper-base"]
    state = CachedState(random_model(config), random_source(config, (3, 4)))
    state.decode_step(np.full(2, START))
    state.select(np.array([0, 0, 1, 1]))
    encoded, kv_cache = state.encoded, state.kv_cache
    state.decode_step(np.array([5, 6, 7, 8]))
    state.select(np.array([1, 0, 3, 3]))  # beams are reordered within their sentence
    assert state.encoded is encoded
    assert state.kv_cache is not kv_cache
    state.select(np.array([1, 2]))
    assert state.encoded is not encoded


def test_a_model_on_the_gpu_decodes_there(monkeypatch):
    config = CONFIGS["tensor2tensor"]
    model, source = random_model(config), random_source(config)
    choices, moves = random_walk(len(source), 6)
    host = walk(CachedState(model, source), choices, moves)
    cupy = strict_cupy.install(monkeypatch)
    model.to("cupy")
    device = walk(CachedState(model, source), choices, moves)
    for left, right in zip(host, device, strict=True):
        assert isinstance(right, cupy.ndarray)
        np.testing.assert_allclose(right.get(), left, rtol=0, atol=1e-12 * np.abs(left).max())


def test_a_language_model_has_no_source():
    model = tiny_model(kind=CausalLanguageModel, target_vocab=11)
    choices, moves = random_walk(3, 9)
    cached = walk(CachedState(model, n_rows=3), choices, moves)
    plain = walk(PrefixState(model, n_rows=3), choices, moves)
    assert len(cached[1]) == 5
    for left, right in zip(cached, plain, strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-12 * np.abs(right).max())
