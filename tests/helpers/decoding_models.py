"""Random models and sources for the tests of decoding."""

import numpy as np
import pytest

from npformer.data import END, START, pad
from npformer.models.transformer import Transformer, TransformerConfig

SMALL = {"d_model": 16, "d_ff": 24, "n_heads": 2, "n_layers": 2, "source_vocab": 11, "target_vocab": 11}
UNTIED = {"tied": "none", "output_bias": True}

# all settings that inference treats differently from training, and the presets of the sources
CONFIGS = {
    "paper-base": TransformerConfig.architecture("paper-base", **SMALL),
    "paper-B-dk16": TransformerConfig.architecture("paper-B-dk16", **SMALL),
    "paper-E-learned": TransformerConfig.architecture("paper-E-learned", **SMALL),
    "jianshu-demo": TransformerConfig.architecture("jianshu-demo", **SMALL),
    "datawhale": TransformerConfig.architecture("datawhale", **SMALL),
    "tensor2tensor": TransformerConfig.architecture("tensor2tensor", **SMALL),
    "paperspace": TransformerConfig.architecture("paperspace", **SMALL),
    "fused": TransformerConfig(fused_projections=True, **SMALL),
    "pre-norm fused": TransformerConfig(fused_projections=True, norm="pre", final_norm=True, **SMALL),
    "queries before": TransformerConfig(query_masking="before", mask_fill=-1e9, **SMALL),
    "no positions": TransformerConfig(positions="none", **UNTIED, **SMALL),
    "rotary positions": TransformerConfig(positions="rotary", norm="pre", final_norm=True, d_head=4, **SMALL),
    "rotary fused": TransformerConfig(positions="rotary", fused_projections=True, d_value=6, **SMALL),
    "jianshu's sines": TransformerConfig(positions="jianshu", tied="output", **SMALL),
    "Marian": TransformerConfig(
        start_id=0, positions="marian", activation="swish", output_bias=True, fused_projections=True, **SMALL
    ),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def random_model(config, seed=0, sharpness=8.0):
    """Return a model in float64 whose parameters, gains and biases included, are all random.

    The large gain of the last norm makes one token clearly the most probable. Its signs are random, because a
    tied output would otherwise prefer the last token and repeat it. Nearly uniform attention would repeat
    tokens as well, so the weights of queries and keys are scaled up.
    """
    rng = np.random.default_rng(seed)
    model = Transformer(config, rng=rng, dtype=np.float64)
    model.values[...] += 0.02 * rng.normal(size=model.values.shape)
    for name, parameter in model.named_parameters():
        if name.endswith(("query.weight", "key.weight")):
            parameter.value *= 3
    last_norm = model.decoder.norm or model.decoder[-1].norm3
    last_norm.gain.value[...] = sharpness * rng.normal(size=config.d_model)
    return model


def random_source(config, lengths=(5, 1, 8, 3, 8, 2), seed=0):
    """Return sentences of these lengths with an end symbol, padded (B, S)."""
    rng = np.random.default_rng(seed)
    return pad([[*rng.integers(4, config.source_vocab, n).tolist(), END] for n in lengths])


def model_with_bias(**biases):
    """Return a model with these output biases: token_7=2.0 sets that of id 7."""
    model = random_model(TransformerConfig(**UNTIED, **SMALL))
    for name, bias in biases.items():
        model.output.bias.value[int(name.removeprefix("token_"))] = bias
    return model


def random_walk(n_rows, n_steps, seed=0):
    """Return tokens to append, and rows to select, which are reordered, repeated and dropped, or all stay."""
    rng = np.random.default_rng(seed)
    choices, moves = [np.full(n_rows, START)], []
    for step in range(n_steps):
        before = len(choices[-1])
        after = [before + 2, before, before, max(1, before - 3)][step % 4]
        rows = rng.integers(0, before, after)
        moves.append(np.arange(before) if step % 4 == 2 else np.sort(rows) if step % 4 else rows)
        choices.append(rng.integers(4, 11, len(moves[-1])))
    return choices[:-1], moves


def walk(state, choices, moves):
    """Return copies of the logits of every step, since a FastState overwrites them."""
    logits = []
    for tokens, rows in zip(choices, moves, strict=True):
        logits.append(state.decode_step(tokens).copy())
        state.select(rows)
    return logits


def assert_same_walk(state, other, n_steps):
    """Compare the logits of two states on the same random walk."""
    choices, moves = random_walk(len(state.sentence), n_steps)
    for left, right in zip(walk(state, choices, moves), walk(other, choices, moves), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-12 * np.abs(right).max())
