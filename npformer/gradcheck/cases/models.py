"""Cases of multi-head attention, of encoder and decoder layers, and of whole models."""

from collections.abc import Iterator

import numpy as np

from npformer.attention import MultiHeadAttention
from npformer.functional.masking import Masking
from npformer.gradcheck.cases.case import FF, B, Case, D, H, S, T, V, floats
from npformer.gradcheck.whole import ModelWithLoss
from npformer.masks import causal_mask, padding_mask, query_mask
from npformer.transformer import Decoder, DecoderLayer, Encoder, EncoderLayer, Transformer, TransformerConfig

# ragged sentences: 0 is padding, 2 and 3 the start and the end, and words repeat
SOURCE = np.array([[5, 6, 7, 6, 3], [5, 8, 3, 0, 0]])
TARGET_IN = np.array([[2, 5, 6, 5], [2, 4, 4, 0]])
TARGET_OUT = np.array([[5, 6, 5, 3], [4, 4, 3, 0]])
DROPPING = {"train": True, "rng": 5}
NARROW = {"d_head": 4, "d_value": 5}  # heads whose width has nothing to do with d_model


def multi_head_cases() -> Iterator[Case]:
    """Multi-head attention with every option, for self- and cross-attention."""
    options = {
        "separate": {},
        "no biases": {"bias": False},
        "no Wo": {"output": False},
        "relu on q, k, v": {"activation": "relu"},
        "gelu on q, k, v": {"activation": "gelu"},
        "d_head 4, d_value 5": NARROW,
        "one head": {"n_heads": 1},
        "unscaled": {"scale": False},
        "dropout": {"rate": 0.3},
        "masks replaced by -1e10": {"masking": Masking(-1e10)},
    }
    for name, option in options.items():
        yield _self_attention(name, option)
        yield _cross_attention(name, option)
    for name, option in {"fused": {}, "fused, d_head 4, d_value 5": NARROW}.items():
        yield _self_attention(name, option | {"fused": "qkv"})
        yield _cross_attention(name, option | {"fused": "kv"})
    yield Case(
        "multi-head, values apart",
        lambda rng: (_multi_head({}, rng), *(floats(B, n, D)(rng) for n in (T, S, S))),
        {"mask": padding_mask(SOURCE)},
    )


def _multi_head(option, rng):
    return MultiHeadAttention(D, rng=rng, dtype=np.float64, **({"n_heads": H} | option))


def _self_attention(name, option):
    mask = padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN)
    return Case(
        f"multi-head self, {name}",
        lambda rng: (_multi_head(option, rng), floats(B, T, D)(rng)),
        {"mask": mask, "query_mask": query_mask(TARGET_IN), **DROPPING},
    )


def _cross_attention(name, option):
    return Case(
        f"multi-head cross, {name}",
        lambda rng: (_multi_head(option, rng), floats(B, T, D)(rng), floats(B, S, D)(rng)),
        {"mask": padding_mask(SOURCE), **DROPPING},
    )


def small_config(**changes):
    """A whole model's settings in miniature, every kind of dropout and label smoothing on."""
    settings = {
        "source_vocab": V,
        "target_vocab": V,
        "d_model": D,
        "d_ff": FF,
        "n_heads": H,
        "n_layers": 2,
        "max_length": 8,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "feed_forward_dropout": 0.1,
        "label_smoothing": 0.1,
    }
    return TransformerConfig().replace(**(settings | changes))


PRE = {"norm": "pre", "final_norm": True}


def stack_cases() -> Iterator[Case]:
    """Encoder and decoder layers, and stacks of two."""
    mask = padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN)
    for norm, changes in {"post-norm": {}, "pre-norm": PRE, "fused": {"fused_projections": True}}.items():
        config = small_config(**changes)
        for thing in (EncoderLayer, Encoder):
            yield Case(
                f"{thing.__name__}, {norm}",
                lambda rng, t=thing, c=config: (t(c, rng=rng, dtype=np.float64), floats(B, S, D)(rng)),
                {"mask": padding_mask(SOURCE), **DROPPING},
            )
        for thing in (DecoderLayer, Decoder):
            yield Case(
                f"{thing.__name__}, {norm}",
                lambda rng, t=thing, c=config: (
                    t(c, rng=rng, dtype=np.float64),
                    floats(B, T, D)(rng),
                    floats(B, S, D)(rng),
                ),
                {"mask": mask, "memory_mask": padding_mask(SOURCE), **DROPPING},
            )


def model_cases() -> Iterator[Case]:
    """Whole models with their loss: every option on, and the presets of the documents in miniature."""
    everything = {"zero_padding": True, "output_bias": True, "positions": "learned", **NARROW}
    for name, changes in {
        "every option, post-norm": {**everything, "tied": "all", "query_masking": "after"},
        "every option, pre-norm": {**everything, **PRE, "tied": "output", "activation": "gelu"},
        "every option, fused": {**everything, **PRE, "tied": "all", "fused_projections": True},
        "untied, swish": {"tied": "none", "activation": "swish", "final_norm": True},
    }.items():
        yield _model(name, small_config(**changes))
    for name in ("paper-base", "jianshu-demo", "datawhale", "tensor2tensor", "paperspace"):
        sizes = {"d_model": D, "d_ff": FF, "n_heads": H, "n_layers": 2, "max_length": 8}
        words = {"source_vocab": V, "target_vocab": V}
        yield _model(name, TransformerConfig.preset(name, **sizes, **words))


def _model(name, config):
    return Case(
        f"Transformer, {name}",
        lambda rng: (
            ModelWithLoss(Transformer(config, rng=rng, dtype=np.float64)),
            SOURCE,
            TARGET_IN,
            TARGET_OUT,
        ),
        DROPPING,
        tolerance=1e-11,
    )
