"""Qwen3, a Llama with QK-norm: https://huggingface.co/docs/transformers/model_doc/qwen3.

`q_norm` and `k_norm` are the gains with which each head of queries and keys is normalized (models/qwen3.py).
All other names are those of Llama.

Source: Yang et al. 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import decoder_config, require_no_windows, settings_of, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPTConfig
from npformer.models.qwen3 import Qwen3, Qwen3Config

# the settings that a file may leave out
DEFAULTS = {"head_dim": 128, "max_position_embeddings": 32768}


def config_of(settings: Settings) -> Qwen3Config:
    """Return our configuration of a Qwen3.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("attention_bias", False, default=False)
    config: Qwen3Config = decoder_config(settings, Qwen3Config, defaults=DEFAULTS)
    require_no_windows(settings, config.n_layers)
    return config


def qwen3_settings(config: GPTConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return settings_of(config, "qwen3", "Qwen3", attention_bias=False)


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from llama_rows(config)
    yield from gain_rows(config)


def gain_rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the gains of queries and keys."""
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}.self_attention", f"model.layers.{i}.self_attn"
        yield WeightRow(f"{ours}.query_gain", (config.d_head,), (f"{theirs}.q_norm.weight",))
        yield WeightRow(f"{ours}.key_gain", (config.d_head,), (f"{theirs}.k_norm.weight",))


QWEN3 = Family("qwen3", Qwen3, config_of, qwen3_settings, rows, tensor_name, with_head)
