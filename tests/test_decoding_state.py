"""The cache changes nothing: keys and values kept against the whole model run anew."""

import numpy as np
import pytest
import strict_cupy

from npformer.data import END, START, pad
from npformer.decoding.state import CachedState, PrefixState
from npformer.transformer import Transformer, TransformerConfig

SMALL = {"d_model": 16, "d_ff": 24, "n_heads": 2, "n_layers": 2, "source_vocab": 11, "target_vocab": 11}
UNTIED = {"tied": "none", "output_bias": True}

# every setting that inference treats otherwise than training does, and the documents' presets
CONFIGS = {
    "paper-base": TransformerConfig.preset("paper-base", **SMALL),
    "paper-B-dk16": TransformerConfig.preset("paper-B-dk16", **SMALL),
    "paper-E-learned": TransformerConfig.preset("paper-E-learned", **SMALL),
    "jianshu-demo": TransformerConfig.preset("jianshu-demo", **SMALL),
    "datawhale": TransformerConfig.preset("datawhale", **SMALL),
    "tensor2tensor": TransformerConfig.preset("tensor2tensor", **SMALL),
    "paperspace": TransformerConfig.preset("paperspace", **SMALL),
    "fused": TransformerConfig(fused_projections=True, **SMALL),
    "pre-norm fused": TransformerConfig(fused_projections=True, norm="pre", final_norm=True, **SMALL),
    "queries before": TransformerConfig(query_masking="before", mask_fill=-1e9, **SMALL),
    "no positions": TransformerConfig(positions="none", **UNTIED, **SMALL),
    "jianshu's sines": TransformerConfig(positions="jianshu", tied="output", **SMALL),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def random_model(config, seed=0, sharpness=8.0):
    """A model in float64 whose parameters, gains and biases included, are all random.

    The last norm's gain makes choices clear. Its signs are random, since a tied output otherwise prefers the
    word just read, and every translation is one word again and again; so it is where attention is flat.
    """
    rng = np.random.default_rng(seed)
    model = Transformer(config, rng=rng, dtype=np.float64)
    model.values[...] += 0.02 * rng.normal(size=model.values.shape)
    for name, parameter in model.named_parameters():
        if name.endswith(("query.weight", "key.weight")):
            parameter.value *= 3
    last_norm = model.decoder.norm or model.decoder[-1].feed_forward_residual.norm
    last_norm.gain.value[...] = sharpness * rng.normal(size=config.d_model)
    return model


def random_source(config, lengths=(5, 1, 8, 3, 8, 2), seed=0):
    """Sentences of these many words with an end, padded (B, S)."""
    rng = np.random.default_rng(seed)
    return pad([[*rng.integers(4, config.source_vocab, n).tolist(), END] for n in lengths])


def walk(state, choices, moves):
    """The logits of every step, with these words chosen and these rows selected after each."""
    logits = []
    for words, rows in zip(choices, moves, strict=True):
        logits.append(state.step(words))
        state.select(rows)
    return logits


def random_walk(n_rows, n_steps, *, seed=0):
    """Words to choose, and rows that change places, become several, and go."""
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


def test_rows_know_their_sentence():
    config = CONFIGS["paper-base"]
    model, source = random_model(config), random_source(config)
    for state in (CachedState(model, source), PrefixState(model, source)):
        state.step(np.full(6, START))
        state.select(np.array([4, 4, 1, 0]))
        np.testing.assert_array_equal(state.sentence, [4, 4, 1, 0])
        state.step(np.array([5, 6, 7, 8]))
        state.select(np.array([1, 3]))
        np.testing.assert_array_equal(state.sentence, [4, 0])


def test_the_source_is_copied_only_when_rows_change_sentence():
    config = CONFIGS["paper-base"]
    state = CachedState(random_model(config), random_source(config, (3, 4)))
    state.step(np.full(2, START))
    state.select(np.array([0, 0, 1, 1]))
    memory, past = state.memory, state.past
    state.step(np.array([5, 6, 7, 8]))
    state.select(np.array([1, 0, 3, 3]))  # beams change places within their sentence
    assert state.memory is memory
    assert state.past is not past
    state.select(np.array([1, 2]))
    assert state.memory is not memory


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
