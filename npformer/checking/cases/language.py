"""Cases of the language models, GPT and BERT."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.checking.cases.case import FF, B, Case, D, Maker, T, V, floats, given, made, make_case
from npformer.checking.cases.models import DROPPING, TARGET_IN, TARGET_OUT
from npformer.checking.whole import LanguageModelWithLoss
from npformer.models.bert import Bert, BertConfig, BertEmbedding, BertHead
from npformer.models.classifier import ClassifierHead
from npformer.models.deepseek import DeepSeekConfig
from npformer.models.gemma import GemmaConfig
from npformer.models.gemma2 import Gemma2Config
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.gpt_neox import GPTNeoXConfig
from npformer.models.mixture import MixtureConfig
from npformer.models.olmo2 import Olmo2Config
from npformer.models.qwen3 import Qwen3Config
from npformer.models.registry import build
from npformer.models.smollm3 import SmolLM3Config
from npformer.models.vit import ViT, ViTConfig
from npformer.nn import Parameter

# ids in which 8 replaces hidden tokens, and the hidden tokens as targets; the target 0 has no loss
HIDDEN = np.array([[8, 5, 6, 3], [4, 8, 3, 0]])
HIDDEN_TARGETS = np.array([[7, 0, 6, 0], [0, 4, 0, 0]])
SEGMENT_IDS = np.array([[0, 1, 1, 0], [1, 1, 1, 0]])


def gpt_cases() -> Iterator[Case]:
    """Yield GPT with its loss: the parts of GPT-2 and of Llama, with every option on."""
    sizes: dict[str, Any] = {"vocab_size": V, "d_model": 8, "n_layers": 2, "n_heads": 4, "context": 8}
    shared: dict[str, Any] = {"dropout": 0.2, "label_smoothing": 0.1, "pad_id": 0}
    llama: dict[str, Any] = {"norm": "rms", "positions": "rotary", "n_kv_heads": 2, "activation": "swiglu"}
    variants: dict[str, dict[str, Any]] = {
        "learned positions": {},
        "biases of queries, keys and values alone, untied": {
            "bias": False,
            "qkv_bias": True,
            "tied": False,
            "activation": "gelu",
        },
        "wide heads": {"head_dim": 4},
        "rotary positions of Llama 3": {**llama, "rotary_scaling": "llama3"},
        "every option": {**llama, "d_ff": 5, "window": 2, "bias": True},
        "every option, untied": {
            **llama,
            "n_kv_heads": 1,
            "activation": "geglu",
            "rotary_layout": "interleaved",
            "window": 3,
            "bias": False,
            "tied": False,
        },
    }
    for name, changes in variants.items():
        model = _with_loss(GPT, GPTConfig(**(sizes | shared | changes)))
        yield make_case(f"GPT, {name}", model, given(TARGET_IN), given(TARGET_OUT), **DROPPING)
    config = GPTConfig(**(sizes | shared | {"head": False}))
    yield make_case("GPT without a head", made(GPT, config), given(TARGET_IN), **DROPPING)


def family_cases() -> Iterator[Case]:
    """Yield the families whose layers differ from those of GPT, with their loss."""
    sizes: dict[str, Any] = {"vocab_size": V, "d_model": 8, "n_layers": 2, "n_heads": 4, "context": 8}
    shared: dict[str, Any] = {"dropout": 0.2, "pad_id": 0}
    families: dict[str, tuple[type[GPTConfig], dict[str, Any]]] = {
        "Qwen3": (Qwen3Config, {"head_dim": 4, "tied": False, "n_kv_heads": 2}),
        "Olmo2": (Olmo2Config, {"n_kv_heads": 2}),
        "SmolLM3": (SmolLM3Config, {"unrotated": (1,)}),
        "GPTNeoX": (GPTNeoXConfig, {"head_dim": 4, "rotary_share": 0.5}),
    }
    local: dict[str, Any] = {"scale_width": 4, "local": (1,), "local_window": 2, "n_kv_heads": 2}
    families |= {
        "Gemma": (GemmaConfig, {}),
        "Gemma2": (Gemma2Config, {**local, "score_cap": 0.9, "logit_cap": 1.5}),
        "Gemma2, as Gemma 3": (Gemma2Config, {**local, "qk_norm": True, "local_base": 50.0}),
        "Mixture": (MixtureConfig, {"n_experts": 3, "d_expert": 5, "tied": False, "balance_weight": 0.3}),
        "Mixture, one expert for each token": (
            MixtureConfig,
            {"n_experts": 3, "top_k": 1, "renormalize": False, "dense": (1,), "qk_norm": True},
        ),
    }
    latent: dict[str, Any] = {"d_latent": 3, "d_rotary": 2, "head_dim": 4}
    families |= {
        "DeepSeek": (DeepSeekConfig, latent),
        "DeepSeek, latent queries": (DeepSeekConfig, {**latent, "d_query_latent": 5, "window": 2}),
    }
    for name, (config, changes) in families.items():
        model = _with_loss(build, config(**(sizes | shared | changes)))
        yield make_case(name, model, given(TARGET_IN), given(TARGET_OUT), **DROPPING)


def image_cases() -> Iterator[Case]:
    """Yield ViT with its head and without, on images that are not square."""
    sizes: dict[str, Any] = {"d_model": D, "n_layers": 2, "n_heads": 3, "d_ff": 8}
    dropping: dict[str, Any] = {"dropout": 0.2, "attention_dropout": 0.1}
    small: dict[str, Any] = {"image_size": (4, 6), "patch_size": (2, 3), "n_colours": 2}
    for name, n_classes in {"classes": 3, "no head": 0}.items():
        model = made(ViT, ViTConfig(**sizes, **dropping, **small, n_classes=n_classes))
        yield make_case(f"ViT, {name}", model, floats(2, 2, 4, 6), tolerance=1e-11, **DROPPING)


def bert_cases() -> Iterator[Case]:
    """Yield the embedding and the head of BERT, and whole models with their loss and every option."""
    sizes: dict[str, Any] = {"vocab_size": V, "d_model": D, "n_layers": 2, "n_heads": 3, "max_length": 8}
    dropping: dict[str, Any] = {"dropout": 0.2, "attention_dropout": 0.1}
    config = BertConfig(**sizes, **dropping)
    ids, segments = given(HIDDEN), given(SEGMENT_IDS)
    yield make_case("BertEmbedding", made(BertEmbedding, config), ids, segments, **DROPPING)
    yield make_case("BertHead", made(_bert_head, config), floats(B, T, D))
    for hidden in (None, "tanh", "relu"):
        name = f"ClassifierHead, {hidden or 'of tokens'}"
        yield make_case(name, made(ClassifierHead, D, 3, hidden=hidden), floats(B, T, D))
    for name, changes in {
        "every option": {"d_ff": FF, "label_smoothing": 0.1, "n_segments": 3, "activation": "gelu_tanh"},
        "the activation of the paper": {},
    }.items():
        model = _with_loss(Bert, BertConfig(**(sizes | dropping | changes)))
        settings: dict[str, Any] = {"segment_ids": SEGMENT_IDS, **DROPPING}
        yield make_case(f"Bert, {name}", model, ids, given(HIDDEN_TARGETS), **settings)
    config = config.replace(head="text classes", head_activation="relu", first_position=2)
    yield make_case("Bert with a classifier of texts", made(Bert, config), ids, segments, **DROPPING)


def _bert_head(config: BertConfig, rng: np.random.Generator) -> BertHead:
    return BertHead(config, Parameter(rng.standard_normal((V, D))), rng, np.float64)


def _with_loss(kind: Any, config: GPTConfig | BertConfig) -> Maker:
    return lambda rng: LanguageModelWithLoss(kind(config, rng=rng, dtype=np.float64))
