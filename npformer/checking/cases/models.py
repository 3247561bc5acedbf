"""Cases of multi-head attention, of encoder and decoder layers, and of whole models."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.cases.case import FF, B, Case, D, H, Maker, S, T, V, floats, given, made, make_case
from npformer.checking.whole import ModelWithLoss
from npformer.functional.masks import causal_mask, padding_mask, query_mask
from npformer.functional.tutorial_masks import Masking
from npformer.models.bart import BartConfig
from npformer.models.recurrent import RecurrentConfig
from npformer.models.registry import build, kind_of
from npformer.models.t5 import T5Config
from npformer.models.transformer import (
    Decoder,
    Encoder,
    EncoderDecoder,
    TransformerConfig,
    make_decoder_layer,
    make_encoder_layer,
)
from npformer.nn.attention import (
    BasicSelfAttention,
    CappedAttention,
    MultiHeadAttention,
    MultiHeadLatentAttention,
    QKNormAttention,
    TutorialAttention,
)
from npformer.nn.positions import RotaryPositions

# sentences of different lengths: 0 is padding, 2 is the start, 3 is the end, and some tokens repeat
SOURCE = np.array([[5, 6, 7, 6, 3], [5, 8, 3, 0, 0]])
TARGET_IN = np.array([[2, 5, 6, 5], [2, 4, 4, 0]])
TARGET_OUT = np.array([[5, 6, 5, 3], [4, 4, 3, 0]])
DROPPING: dict[str, Any] = {"train": True, "rng": 5}
NARROW: dict[str, Any] = {"d_head": 4, "d_value": 5}  # heads with another width than d_model / n_heads


def multi_head_cases() -> Iterator[Case]:
    """Yield multi-head attention with every option, for self-attention and cross-attention."""
    options: dict[str, dict[str, Any]] = {
        "separate": {},
        "no biases": {"bias": False},
        "no Wo": {"output": False},
        "relu on q, k, v": {"activation": "relu"},
        "gelu on q, k, v": {"activation": "gelu"},
        "d_head 4, d_value 5": NARROW,
        "one head": {"n_heads": 1},
        "unscaled": {"scale": False},
        "dropout": {"dropout": 0.3},
        "masks replaced by -1e10": {"masking": Masking(-1e10)},
    }
    yield make_case("BasicSelfAttention", lambda _: BasicSelfAttention(), floats(B, T, D))
    hidden: dict[str, Any] = {"mask": np.arange(T) < 3}
    yield make_case("BasicSelfAttention, mask", lambda _: BasicSelfAttention(), floats(B, T, D), **hidden)
    for name, option in options.items():
        yield from _both_attentions(name, option)
    for name, option in {"fused": {}, "fused, d_head 4, d_value 5": NARROW}.items():
        yield from _both_attentions(name, option, fused=True)
    # query heads that share keys and values, also with rotary positions and a window
    groups: dict[str, Any] = {"n_heads": 4, "n_kv_heads": 2, **NARROW}
    for name, option in {"grouped": groups, "multi-query": {"n_kv_heads": 1, **NARROW}}.items():
        yield from _both_attentions(name, option)
        yield from _both_attentions(f"{name}, fused", option, fused=True)
    rotary = RotaryPositions(T, NARROW["d_head"], dtype=np.float64)
    window = padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN, window=2)
    for name, fused in {"": "no", ", fused": "qkv"}.items():
        layer = _multi_head(groups | {"rotary": rotary, "dropout": 0.3, "fused": fused})
        case = f"multi-head self, rotary, grouped, window{name}"
        yield make_case(case, layer, floats(B, T, D), mask=window, **DROPPING)
    layer = _multi_head(groups | {"rotary": rotary, "dropout": 0.3, "fused": "qkv", "cap": 0.7})
    yield make_case("CappedAttention", layer, floats(B, T, D), mask=window, **DROPPING)
    for name, whole in {"each head": False, "all heads": True}.items():
        layer = _multi_head(groups | {"rotary": rotary, "dropout": 0.3, "fused": "qkv", "whole": whole})
        yield make_case(f"QKNormAttention, {name}", layer, floats(B, T, D), mask=window, **DROPPING)
    yield from _latent_attentions(window)
    widths = (floats(B, T, D), floats(B, S, 4), floats(B, S, 5))
    yield make_case("multi-head, kdim 4, vdim 5", _multi_head({"kdim": 4, "vdim": 5}), *widths)
    yield _self_attention("no bias of Wo", {"output_bias": False})
    apart = (floats(B, T, D), floats(B, S, D), floats(B, S, D))
    yield make_case("multi-head, values apart", _multi_head({}), *apart, mask=padding_mask(SOURCE))


def _latent_attentions(window: Array) -> Iterator[Case]:
    """Yield multi-head latent attention with queries of x and with latent queries."""
    rotary = RotaryPositions(T, 5, rotated=2, dtype=np.float64)
    latent: dict[str, Any] = {"d_latent": 4, "rotary": rotary, "d_head": 3, "d_value": 2, "dropout": 0.3}
    with_latent_queries: dict[str, Any] = {**latent, "d_query_latent": 3, "output_bias": True}
    for name, option in {"queries of x": latent, "latent queries": with_latent_queries}.items():
        layer = made(MultiHeadLatentAttention, D, H, **option)
        yield make_case(f"MultiHeadLatentAttention, {name}", layer, floats(B, T, D), mask=window, **DROPPING)


def _multi_head(option: dict[str, Any]) -> Maker:
    kind: Any = TutorialAttention if "masking" in option else MultiHeadAttention
    kind = QKNormAttention if "whole" in option else CappedAttention if "cap" in option else kind
    return made(kind, D, **({"n_heads": H} | option))


def _both_attentions(name: str, option: dict[str, Any], *, fused: bool = False) -> Iterator[Case]:
    """Yield self-attention and cross-attention. If they are fused, all projections of an input are one."""
    inputs = (floats(B, T, D), floats(B, S, D))
    yield _self_attention(name, option | ({"fused": "qkv"} if fused else {}))
    cross = _multi_head(option | ({"fused": "kv"} if fused else {}))
    yield make_case(f"multi-head cross, {name}", cross, *inputs, mask=padding_mask(SOURCE), **DROPPING)


def _self_attention(name: str, option: dict[str, Any]) -> Case:
    mask = padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN)
    settings: dict[str, Any] = {"mask": mask, "query_mask": query_mask(TARGET_IN), **DROPPING}
    return make_case(f"multi-head self, {name}", _multi_head(option), floats(B, T, D), **settings)


SIZES: dict[str, Any] = {
    "source_vocab": V,
    "target_vocab": V,
    "d_model": D,
    "d_ff": FF,
    "n_heads": H,
    "n_layers": 2,
    "max_length": 8,
}


def small_config(**changes: Any) -> TransformerConfig:
    """Return the configuration of a small model, with every kind of dropout and with label smoothing."""
    dropouts = ("dropout", "attention_dropout", "feed_forward_dropout", "label_smoothing")
    return TransformerConfig().replace(**(SIZES | dict.fromkeys(dropouts, 0.1) | changes))


PRE: dict[str, Any] = {"norm": "pre", "final_norm": True}
SEQUENCES = ("n-da", "-dan", "n-dan", "n-nda", "-a")


def stack_cases() -> Iterator[Case]:
    """Yield encoder and decoder layers with every place of the norm, and stacks of two."""
    source_mask = padding_mask(SOURCE)
    target_mask = padding_mask(TARGET_IN) & causal_mask(T, TARGET_IN)
    x, memory = floats(B, T, D), floats(B, S, D)
    masks: dict[str, Any] = {"mask": target_mask, "memory_mask": source_mask}
    # a sequence of letters without "n" at its end needs a final norm
    sequences = {norm: {"norm": norm, "final_norm": norm[-1] != "n"} for norm in SEQUENCES}
    settings = {"post-norm": {}, "pre-norm": PRE, "fused": {"fused_projections": True}, **sequences}
    for name, changes in settings.items():
        config = small_config(**changes)
        encoders: dict[str, Any] = {"EncoderLayer": make_encoder_layer, "Encoder": Encoder}
        decoders: dict[str, Any] = {"DecoderLayer": make_decoder_layer, "Decoder": Decoder}
        if name in sequences:  # their stacks are those of other layers
            del encoders["Encoder"], decoders["Decoder"]
        for kind, make in encoders.items():
            yield make_case(f"{kind}, {name}", made(make, config), memory, mask=source_mask, **DROPPING)
        for kind, make in decoders.items():
            yield make_case(f"{kind}, {name}", made(make, config), x, memory, **masks, **DROPPING)
    both: dict[str, Any] = {
        "source_mask": source_mask,
        "target_mask": target_mask,
        "memory_mask": source_mask,
    }
    yield make_case("EncoderDecoder", _encoder_decoder, memory, x, **both)


def _encoder_decoder(rng: np.random.Generator) -> EncoderDecoder:
    return EncoderDecoder(made(Encoder, small_config())(rng), made(Decoder, small_config())(rng))


def model_cases() -> Iterator[Case]:
    """Yield whole Transformers with their loss: every architecture, and every option of the configuration."""
    everything: dict[str, Any] = {"zero_padding": True, "output_bias": True, "positions": "learned", **NARROW}
    for name, changes in {
        "every option, post-norm": {**everything, "tied": "all", "query_masking": "after"},
        "every option, pre-norm": {**everything, **PRE, "tied": "output", "activation": "gelu"},
        "every option, fused": {**everything, **PRE, "tied": "all", "fused_projections": True},
        "norms on either side": {"norm": "n-dan", "tied": "none"},
        "embeddings unscaled, one layer in the decoder": {"scale_embedding": False, "decoder_layers": 1},
        "untied, swish": {"tied": "none", "activation": "swish", "final_norm": True},
        "relative positions": {"positions": "relative", "max_distance": 2, "query_masking": "after"},
        "rotary positions": {"positions": "rotary", "d_head": 4, **PRE, "decoder_layers": 1},
    }.items():
        yield model_case(name, small_config(**changes))
    names = ("dropout", "attention_dropout", "feed_forward_dropout")
    dropouts: dict[str, Any] = dict.fromkeys(names, 0.1)
    yield model_case("BART", BartConfig(**SIZES, **dropouts))
    of_mbart: dict[str, Any] = {**PRE, "scale_embedding": True, "output_bias": False}
    yield model_case("mBART", BartConfig(**(SIZES | dropouts | of_mbart)))
    of_t5: dict[str, Any] = {**SIZES, **dropouts, "n_buckets": 4, "max_distance": 3, "d_head": 4}
    of_t5["norm_eps"] = 1e-2  # with 1e-6, the norm of a small vector multiplies the rounding of float32 by 40
    yield model_case("first version", T5Config(**of_t5))
    gated: dict[str, Any] = {"activation": "geglu_tanh", "own_output": True, "scale_output": False}
    yield model_case("1.1", T5Config(**of_t5, **gated))
    ids = (given(SOURCE), given(TARGET_IN))
    packed: dict[str, Any] = {"packed": True, "tolerance": 1e-11, **DROPPING}
    yield make_case("Transformer, packed, logits", made(build, small_config()), *ids, **packed)
    for name in ("paper-base", "jianshu-demo", "datawhale", "tensor2tensor", "paperspace"):
        yield model_case(name, TransformerConfig.architecture(name, **SIZES))


def recurrent_model_cases() -> Iterator[Case]:
    """Yield whole recurrent translators: both cells, every attention, with and without input feeding."""
    sizes: dict[str, Any] = {"d_model": D, "d_hidden": 8, "max_length": 8, "window": 2, "dropout": 0.2}
    vocabularies = {"source_vocab": V, "target_vocab": V}
    options: dict[str, dict[str, Any]] = {
        "none": {"attention": "none"},
        "none, one side, gru": {"attention": "none", "bidirectional": False, "cell": "gru"},
        "additive": {"attention": "additive"},
        "additive, one side, gru": {"attention": "additive", "bidirectional": False, "cell": "gru"},
        "global, dot": {"score": "dot"},
        "global, embeddings scaled": {"scale_embedding": True},
        "global, concat, gru": {"score": "concat", "cell": "gru"},
        "global, fed": {"feeding": True},
        "local-m, gru": {"attention": "local-m", "cell": "gru"},
        "local-m, fed, one side": {"attention": "local-m", "feeding": True, "bidirectional": False},
        "local-p": {"attention": "local-p", "score": "perceptron"},
        "local-p, fed, gru": {"attention": "local-p", "feeding": True, "cell": "gru"},
    }
    for name, changes in options.items():
        yield model_case(name, RecurrentConfig(**(sizes | vocabularies | changes)))


def model_case(name: str, config: Any) -> Case:
    """Return the case of a whole translator with its loss.

    Args:
        name: The name of the case, without that of the model.
        config: The configuration of the model.
    """
    names = {
        "transformer": "Transformer",
        "recurrent": "RecurrentTranslator",
        "universal": "UniversalTransformer",
        "bart": "Bart",
        "t5": "T5",
    }
    ids = (given(SOURCE), given(TARGET_IN), given(TARGET_OUT))

    def make(rng: np.random.Generator) -> ModelWithLoss:
        return ModelWithLoss(build(config, rng=rng, dtype=np.float64))

    return make_case(f"{names[kind_of(config)]}, {name}", make, *ids, tolerance=1e-11, **DROPPING)
