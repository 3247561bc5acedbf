"""Qwen3, a Llama that normalizes queries and keys (models/qwen3.py).

Each head of queries and keys passes an RMS norm before the rotation; `q_norm` and `k_norm` are the gains of
these norms, each one vector for all heads. The width of a head is usually 128, not D / heads. There are no
biases. All other names are those of Llama. A sliding window that is in use is refused.

Source: Yang et al. 2025; https://huggingface.co/docs/transformers/model_doc/qwen3.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import LLAMA_LIKE, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import fit_head
from npformer.interop.families.windows import require_no_windows
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPTConfig
from npformer.models.qwen3 import Qwen3, Qwen3Config

SETTINGS = LLAMA_LIKE.variant(
    Qwen3Config,
    "Qwen3ForCausalLM",
    required={"attention_bias": False},
    defaults={"head_dim": 128, "num_key_value_heads": 32, "max_position_embeddings": 32768},
)


def config_of(settings: Settings) -> Qwen3Config:
    """Return our configuration, and refuse sliding windows."""
    require_no_windows(settings, first=settings.index("max_window_layers", 28))
    config: Qwen3Config = SETTINGS.read(settings)
    return config


def rows(config: Qwen3Config) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    yield from llama_rows(config)
    yield from gain_rows(config)


def gain_rows(config: GPTConfig, *, whole: bool = False, added: float = 0.0) -> Iterator[WeightRow]:
    """Yield which tensors hold the gains of the norms of queries and keys.

    Args:
        config: Our configuration.
        whole: True if all heads are normalized together, with one gain for their whole width (OLMo 2).
        added: The number that is added to the gains of the file (Gemma 3: 1).
    """
    n_queries, n_keys = (config.n_heads, config.key_heads) if whole else (1, 1)
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}.self_attention", f"model.layers.{i}.self_attn"
        for gain, norm, n_heads in (("query_gain", "q_norm", n_queries), ("key_gain", "k_norm", n_keys)):
            width, tensor = n_heads * config.d_head, f"{theirs}.{norm}.weight"
            yield WeightRow(f"{ours}.{gain}", (width,), (tensor,), added=added)


QWEN3 = Family("qwen3", Qwen3, config_of, SETTINGS.written, rows, tensor_name, fit_head)
