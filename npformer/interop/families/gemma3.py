"""Gemma 3 (text), a Gemma 2 with QK-norm and two rotary bases, and without caps of scores (models/gemma2.py).

The names are those of Gemma 2. `rope_parameters` has a part for each type of layers, since their rotary
positions have two bases. `q_norm` and `k_norm` are the gains with which queries and keys are normalized.

The language model by itself is read (`gemma3_text`), and not the one that reads pictures.

Source: Gemma team 2025, "Gemma 3"; https://huggingface.co/docs/transformers/model_doc/gemma3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families import gemma2
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.gemma import DEFAULTS, ONLY
from npformer.interop.families.llama import gain_rows, llama_table, tensor_name
from npformer.interop.families.parts import TYPES, layer_types, local_layers, with_head
from npformer.interop.families.settings_table import SettingRow, or_null
from npformer.interop.settings_file import Settings
from npformer.models.gemma2 import Gemma2, Gemma2Config

SETTINGS = llama_table(
    Gemma2Config,
    "gemma3_text",
    "Gemma3",
    *gemma2.ROWS,
    SettingRow(or_null(Settings.number), "logit_cap", "final_logit_softcapping"),
    only=ONLY | {"attn_logit_softcapping": None},
    defaults=DEFAULTS | {"num_key_value_heads": 4, "max_position_embeddings": 131072},
    qk_norm=True,
)


def config_of(settings: Settings) -> Gemma2Config:
    """Return our configuration of a Gemma 3, whose local layers have a rotary base of their own."""
    rope = settings.part("rope_parameters")
    far, near = rope.part("full_attention"), rope.part("sliding_attention")
    for part in (far, near):
        part.choice("rope_type", {"default": None}, "default")
    base = near.number("rope_theta", settings.number("rope_local_base_freq", 10000.0))
    theta = far.number("rope_theta", settings.number("rope_theta", 1e6))
    local = local_layers(settings, settings.count("sliding_window_pattern", 6))
    values = {**settings.values, "rope_parameters": {**far.values, "rope_theta": theta}}
    config: Gemma2Config = SETTINGS.read(Settings(values, settings.place), local=local, local_base=base)
    return config


def settings_of(config: Gemma2Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    bases = dict(zip(TYPES, (config.local_base, config.rotary_base), strict=True))
    rope = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()}
    return SETTINGS.written(config, layer_types=layer_types(config), rope_parameters=rope)


def rows(config: Gemma2Config) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from gemma2.rows(config)
    yield from gain_rows(config, added=1.0)


GEMMA3 = Family("gemma3_text", Gemma2, config_of, settings_of, rows, tensor_name, with_head)
