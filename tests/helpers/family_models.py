"""Small models of npformer with random weights, of every family that Hugging Face folders have."""

import numpy as np

from npformer.models.bart import BartConfig
from npformer.models.bert import BertConfig
from npformer.models.gemma import GemmaConfig
from npformer.models.gemma2 import Gemma2Config
from npformer.models.gpt import GPTConfig
from npformer.models.gpt_neox import GPTNeoXConfig
from npformer.models.mixture import MixtureConfig
from npformer.models.olmo2 import Olmo2Config
from npformer.models.qwen3 import Qwen3Config
from npformer.models.registry import build
from npformer.models.smollm3 import SmolLM3Config
from npformer.models.t5 import T5Config
from npformer.models.transformer import TransformerConfig
from npformer.models.vit import ViTConfig

GPT_SIZES = {"vocab_size": 11, "d_model": 8, "n_layers": 2, "n_heads": 2, "context": 6}
LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False, "tied": False}
LLAMA3 = {"rotary_scaling": "llama3", "rotary_factor": 4.0, "rotary_original_context": 2}
GEMMA2 = {"local": (1,), "local_window": 2, "scale_width": 9}
BERT_SIZES = {"vocab_size": 11, "d_model": 8, "n_layers": 2, "n_heads": 2, "max_length": 6}
MARIAN_SIZES = {"source_vocab": 11, "target_vocab": 11, "d_model": 8, "d_ff": 12, "n_heads": 2, "n_layers": 2}
VIT_SIZES = {"image_size": (4, 6), "patch_size": (2, 3), "d_model": 8, "d_ff": 12, "n_heads": 2}
VIT_SIZES |= {"n_layers": 2}
MARIAN = MARIAN_SIZES | {"positions": "marian", "output_bias": True, "max_length": 6}

# the families, and configurations of models that each can express
CONFIGS = {
    "gpt2": GPTConfig(**GPT_SIZES, dropout=0.1),
    "gpt2 untied": GPTConfig(**GPT_SIZES, tied=False, d_ff=5, activation="relu", norm_eps=1e-3, pad_id=1),
    "llama": GPTConfig(**GPT_SIZES, **LLAMA),
    "llama with key heads, scaling and biases": GPTConfig(
        **GPT_SIZES | LLAMA | LLAMA3 | {"n_kv_heads": 1, "head_dim": 6, "bias": True, "rotary_base": 500.0}
    ),
    "opt": GPTConfig(**GPT_SIZES, activation="relu"),
    "mistral": GPTConfig(**GPT_SIZES | LLAMA | {"n_kv_heads": 1, "window": 3}),
    "phi3": GPTConfig(**GPT_SIZES | LLAMA | {"n_kv_heads": 1, "window": 3, "tied": True}),
    "qwen3": Qwen3Config(**GPT_SIZES, head_dim=6),
    "olmo2": Olmo2Config(**GPT_SIZES, n_kv_heads=1),
    "smollm3": SmolLM3Config(**GPT_SIZES, unrotated=(1,)),
    "gpt_neox": GPTNeoXConfig(**GPT_SIZES, rotary_share=0.5),
    "gpt_neox without the parallel residual": GPTNeoXConfig(**GPT_SIZES, rotary_share=1.0, parallel=False),
    "gemma": GemmaConfig(**GPT_SIZES, n_kv_heads=1),
    "gemma2": Gemma2Config(**GPT_SIZES, **GEMMA2, score_cap=2.0, logit_cap=3.0, local_base=1e4),
    "gemma3_text": Gemma2Config(**GPT_SIZES, **GEMMA2, qk_norm=True, local_base=100.0),
    "mixtral": MixtureConfig(**GPT_SIZES, n_experts=3, n_kv_heads=1, window=3, tied=False),
    "qwen3_moe": MixtureConfig(
        **GPT_SIZES, n_experts=3, renormalize=False, d_expert=5, dense=(1,), qk_norm=True, head_dim=6
    ),
    "qwen2": GPTConfig(**GPT_SIZES | LLAMA | {"qkv_bias": True, "tied": True, "activation": "geglu"}),
    "bert": BertConfig(**BERT_SIZES, pad_id=3),
    "distilbert": BertConfig(**BERT_SIZES, n_segments=0, d_ff=9, activation="swish"),
    "bert without a head": BertConfig(**BERT_SIZES, head="none"),
    "bert with classes of texts": BertConfig(**BERT_SIZES, head="text classes", n_classes=3),
    "distilbert with classes of tokens": BertConfig(**BERT_SIZES, n_segments=0, head="token classes"),
    "roberta": BertConfig(**BERT_SIZES, n_segments=1, pad_id=1, first_position=2),
    "xlm-roberta with classes of texts": BertConfig(
        **BERT_SIZES, pad_id=2, first_position=3, head="text classes"
    ),
    "xlm-roberta": BertConfig(**BERT_SIZES, n_segments=1, pad_id=1, first_position=2),
    "camembert": BertConfig(**BERT_SIZES, n_segments=1, pad_id=1, first_position=2),
    "bart": BartConfig(**MARIAN_SIZES, max_length=6, start_id=3, decoder_layers=1),
    "bart without a bias": BartConfig(**MARIAN_SIZES, max_length=6, output_bias=False),
    "mbart": BartConfig(**MARIAN_SIZES, max_length=6, norm="pre", final_norm=True, scale_embedding=True),
    "t5": T5Config(**MARIAN_SIZES, n_buckets=6, max_distance=4, start_id=0, d_head=3),
    "t5 with an output of its own": T5Config(
        **MARIAN_SIZES, activation="geglu_tanh", own_output=True, scale_output=False, decoder_layers=1
    ),
    "t5 with separate projections": T5Config(**MARIAN_SIZES, fused_projections=False, scale_output=False),
    "vit": ViTConfig(**VIT_SIZES, n_classes=3),
    "vit without a head": ViTConfig(**VIT_SIZES, activation="relu"),
    "marian": TransformerConfig(**MARIAN, activation="swish"),
    "marian with separate projections": TransformerConfig(**MARIAN | {"tied": "output", "source_vocab": 9}),
    "marian with three tables": TransformerConfig(
        **MARIAN, tied="none", fused_projections=True, scale_embedding=False, start_id=0
    ),
}


def random_model(config, dtype=np.float32):
    """Return a model with random gains and biases, too."""
    model, rng = build(config, dtype=dtype), np.random.default_rng(1)
    for parameter in model.parameters():
        parameter.value += (0.3 * rng.standard_normal(parameter.shape)).astype(dtype)
    return model
