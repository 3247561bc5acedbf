"""Small random models of every kind that the lenses look into, a trained one, and ids that they can read."""

import numpy as np

from npformer import load
from npformer.models.bart import BartConfig
from npformer.models.bert import Bert, BertConfig
from npformer.models.deepseek import DeepSeekConfig
from npformer.models.gemma2 import Gemma2Config
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.gpt_neox import GPTNeoXConfig
from npformer.models.mixture import MixtureConfig
from npformer.models.olmo2 import Olmo2Config
from npformer.models.qwen3 import Qwen3Config
from npformer.models.registry import build
from npformer.models.t5 import T5Config
from npformer.models.transformer import Transformer, TransformerConfig

GPT_SIZES = {"vocab_size": 17, "d_model": 16, "n_layers": 3, "n_heads": 4, "context": 12}
SIZES = {"source_vocab": 17, "target_vocab": 17, "d_model": 16, "d_ff": 32, "n_heads": 4, "n_layers": 2}
UNNORMALIZED = ("pre", "n-da", "n-dna")  # their stacks end with a norm


def _shaken(model):
    """Return a model all of whose parameters, biases and gains too, are random."""
    rng = np.random.default_rng(1)
    model.values += 0.2 * rng.standard_normal(model.values.shape).astype(model.values.dtype)
    return model


def _transformer(norm):
    return _shaken(
        Transformer(TransformerConfig(**SIZES, max_length=12, norm=norm, final_norm=norm in UNNORMALIZED))
    )


MODELS = {
    "gpt": lambda: _shaken(GPT(GPTConfig(**GPT_SIZES))),
    "llama": lambda: _shaken(GPT(GPTConfig.preset("llama-style").replace(**GPT_SIZES, n_kv_heads=2))),
    "qwen3": lambda: _shaken(build(Qwen3Config(**GPT_SIZES))),
    "olmo2": lambda: _shaken(build(Olmo2Config(**GPT_SIZES))),
    "gpt_neox": lambda: _shaken(build(GPTNeoXConfig(**GPT_SIZES, rotary_share=0.5))),
    "mixture": lambda: _shaken(build(MixtureConfig(**GPT_SIZES, n_experts=3, dense=(1,)))),
    "gemma2": lambda: _shaken(build(Gemma2Config(**GPT_SIZES, score_cap=2.0, local=(1,), local_window=2))),
    "bart": lambda: _shaken(build(BartConfig(**SIZES, max_length=12))),
    "deepseek": lambda: _shaken(build(DeepSeekConfig(**GPT_SIZES, d_latent=6, d_rotary=2))),
    "t5": lambda: _shaken(build(T5Config(**SIZES, n_buckets=6, max_distance=4))),
    "bert": lambda: _shaken(
        Bert(BertConfig(vocab_size=17, d_model=16, n_layers=2, n_heads=4, max_length=12))
    ),
    "shipped": lambda: load("en-de").model,
} | {norm: lambda norm=norm: _transformer(norm) for norm in ("post", *UNNORMALIZED, "-dan", "n-dan")}


def ids_of(model, seed=0):
    """Return the ids of each input of a model: 6 tokens, and 5 for a decoder."""
    rng, n = np.random.default_rng(seed), min(model.config.target_vocab, 9)
    ids = rng.integers(4, n, (1, 6))
    return [ids, rng.integers(4, n, (1, 5))] if isinstance(model, Transformer) else [ids]
