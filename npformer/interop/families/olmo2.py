"""OLMo 2: https://huggingface.co/docs/transformers/model_doc/olmo2.

The names are those of Llama, but the norms belong behind the sublayers: `post_attention_layernorm` normalizes
what attention adds, and `post_feedforward_layernorm` what the feed-forward network adds. `q_norm` and
`k_norm` are gains for the whole projections, before they are split into heads (models/olmo2.py).

Source: OLMo team 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import decoder_config, settings_of, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPTConfig
from npformer.models.olmo2 import Olmo2, Olmo2Config

# the settings that a file may leave out
DEFAULTS = {"rms_norm_eps": 1e-5}
NORMS = {"norm1": "post_attention_layernorm", "norm2": "post_feedforward_layernorm"}


def config_of(settings: Settings) -> Olmo2Config:
    """Return our configuration of an OLMo 2.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("attention_bias", False, default=False)
    config: Olmo2Config = decoder_config(settings, Olmo2Config, defaults=DEFAULTS)
    return config


def olmo2_settings(config: GPTConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return settings_of(config, "olmo2", "Olmo2", attention_bias=False)


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from llama_rows(config, NORMS)
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}.self_attention", f"model.layers.{i}.self_attn"
        queries, keys = config.n_heads * config.d_head, config.key_heads * config.d_head
        yield WeightRow(f"{ours}.query_gain", (queries,), (f"{theirs}.q_norm.weight",))
        yield WeightRow(f"{ours}.key_gain", (keys,), (f"{theirs}.k_norm.weight",))


OLMO2 = Family("olmo2", Olmo2, config_of, olmo2_settings, rows, tensor_name, with_head)
