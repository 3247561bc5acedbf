"""Cases of language models and of batch norm."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.checking.cases.case import FF, B, Case, D, Maker, T, V, floats, given, make_case, pair_case
from npformer.checking.cases.models import DROPPING, NARROW, PRE, TARGET_IN, TARGET_OUT, small_config
from npformer.checking.whole import LanguageModelWithLoss
from npformer.functional.batch_norm import Statistics
from npformer.models.bert import Bert, BertConfig, BertEmbedding, BertHead, MaskedLanguageModel
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.transformer.language_model import CausalLanguageModel
from npformer.nn import BatchNorm, Parameter

TOKEN_MASK = np.array([[True] * T, [True] * 2 + [False] * (T - 2)])
# ids in which 8 replaces hidden tokens, and the hidden tokens as targets; the target 0 has no loss
HIDDEN = np.array([[8, 5, 6, 3], [4, 8, 3, 0]])
HIDDEN_TARGETS = np.array([[7, 0, 6, 0], [0, 4, 0, 0]])
SEGMENT_IDS = np.array([[0, 1, 1, 0], [1, 1, 1, 0]])


def batch_norm_cases() -> Iterator[Case]:
    """Yield batch norm with the statistics of the batch and with given ones, with and without padding."""
    pair = (F.batch_norm, F.batch_norm_backward)
    inputs = (floats(B, T, D), floats(D), floats(D))
    masks: dict[str, dict[str, Any]] = {
        "": {},
        ", padding": {"mask": TOKEN_MASK},
        ", padding alone": {"mask": np.zeros((B, T), bool), "eps": 1.0},
    }
    for name, settings in masks.items():
        yield pair_case(f"batch norm{name}", pair, *inputs, **settings)
    given_ones = Statistics(np.linspace(-1, 1, D), np.linspace(0.5, 2, D))
    by_given = (
        lambda x, gain, bias: F.batch_norm(x, gain, bias, statistics=given_ones),
        F.batch_norm_backward,
    )
    yield pair_case("batch norm, given statistics", by_given, *inputs)
    yield make_case("BatchNorm", _batch_norm, floats(B, T, D), mask=TOKEN_MASK, train=True)
    yield make_case("BatchNorm, running statistics", _batch_norm, floats(B, T, D))


def _batch_norm(rng: np.random.Generator) -> BatchNorm:
    layer = BatchNorm(D, dtype=np.float64)
    layer.running_mean, layer.running_variance = rng.standard_normal(D), rng.uniform(0.5, 2, D)
    return layer


def language_model_cases() -> Iterator[Case]:
    """Yield both language models with their loss and every option."""
    everything: dict[str, Any] = {"zero_padding": True, "output_bias": True, "positions": "learned", **NARROW}
    for name, changes in {
        "every option, post-norm": {**everything, "activation": "gelu", "query_masking": "after"},
        "every option, pre-norm": {**everything, **PRE, "fused_projections": True},
        "untied": {"tied": "none"},
    }.items():
        config = small_config(**changes)
        yield _model(MaskedLanguageModel, name, config, HIDDEN, HIDDEN_TARGETS)
        yield _model(CausalLanguageModel, name, config, TARGET_IN, TARGET_OUT)


def gpt_cases() -> Iterator[Case]:
    """Yield GPT with its loss: the parts of GPT-2 and of Llama, with every option on."""
    sizes: dict[str, Any] = {"vocab_size": V, "d_model": 8, "n_layers": 2, "n_heads": 4, "context": 8}
    shared: dict[str, Any] = {"dropout": 0.2, "label_smoothing": 0.1, "pad_id": 0}
    llama: dict[str, Any] = {"norm": "rms", "positions": "rotary", "n_kv_heads": 2, "activation": "swiglu"}
    for name, changes in {
        "learned positions": {},
        "biases of queries, keys and values alone, untied": {
            "bias": False,
            "qkv_bias": True,
            "tied": False,
            "activation": "gelu",
        },
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
    }.items():
        yield _model(GPT, name, GPTConfig(**(sizes | shared | changes)), TARGET_IN, TARGET_OUT)


def bert_cases() -> Iterator[Case]:
    """Yield the embedding and the head of BERT, and whole models with their loss and every option."""
    sizes: dict[str, Any] = {"vocab_size": V, "d_model": D, "n_layers": 2, "n_heads": 3, "max_length": 8}
    dropping: dict[str, Any] = {"dropout": 0.2, "attention_dropout": 0.1}
    config = BertConfig(**sizes, **dropping)
    yield make_case(
        "BertEmbedding",
        lambda rng: BertEmbedding(config, rng, np.float64),
        given(HIDDEN),
        given(SEGMENT_IDS),
        **DROPPING,
    )
    yield make_case("BertHead", lambda rng: _bert_head(config, rng), floats(B, T, D))
    for name, changes in {
        "every option": {"d_ff": FF, "label_smoothing": 0.1, "n_segments": 3, "activation": "gelu_tanh"},
        "the activation of the paper": {},
    }.items():
        yield make_case(
            f"Bert, {name}",
            _bert(BertConfig(**(sizes | dropping | changes))),
            given(HIDDEN),
            given(HIDDEN_TARGETS),
            segment_ids=SEGMENT_IDS,
            **DROPPING,
        )


def _bert(config: BertConfig) -> Maker:
    return lambda rng: LanguageModelWithLoss(Bert(config, rng=rng, dtype=np.float64))


def _bert_head(config: BertConfig, rng: np.random.Generator) -> BertHead:
    return BertHead(config, Parameter(rng.standard_normal((V, D))), rng, np.float64)


def _model(kind: Any, name: str, config: Any, ids: Array, target_out: Array) -> Case:
    return make_case(
        f"{kind.__name__}, {name}",
        lambda rng: LanguageModelWithLoss(kind(config, rng=rng, dtype=np.float64)),
        given(ids),
        given(target_out),
        **DROPPING,
    )
