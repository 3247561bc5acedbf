"""Qwen3, a Llama with QK-norm: https://huggingface.co/docs/transformers/model_doc/qwen3.

`q_norm` and `k_norm` are the gains with which each head of queries and keys is normalized (models/qwen3.py).
All other names are those of Llama.

Source: Yang et al. 2025.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import gain_rows, llama_table, require_no_windows, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPTConfig
from npformer.models.qwen3 import Qwen3, Qwen3Config

SETTINGS = llama_table(
    Qwen3Config,
    "qwen3",
    "Qwen3",
    only={"attention_bias": False},
    defaults={"head_dim": 128, "max_position_embeddings": 32768},
)


def config_of(settings: Settings) -> Qwen3Config:
    """Return our configuration of a Qwen3, and refuse sliding windows."""
    config: Qwen3Config = SETTINGS.read(settings)
    require_no_windows(settings, config.n_layers)
    return config


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from llama_rows(config)
    yield from gain_rows(config)


QWEN3 = Family("qwen3", Qwen3, config_of, SETTINGS.written, rows, tensor_name, with_head)
