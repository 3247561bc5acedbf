"""Gemma 3 (text), a Gemma 2 with QK-norm and two rotary bases, and without caps of scores (models/gemma2.py).

All layers are local but 5, 11 and so on, unless `layer_types` names others, and `rope_parameters` has a part
for each type of layers, since their rotary positions have two bases. `q_norm` and `k_norm` are the gains of
the norms of each head's queries and keys, which keep the scores small instead of the cap; usually logits have
none either. The names are those of Gemma 2. Models that also read pictures are not of this family.

Source: Gemma team 2025, "Gemma 3"; https://huggingface.co/docs/transformers/model_doc/gemma3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families import gemma2
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import tensor_name
from npformer.interop.families.parts import fit_head
from npformer.interop.families.qwen3 import gain_rows
from npformer.interop.families.windows import FULL, SLIDING, layer_types, local_layers
from npformer.interop.settings_file import Settings
from npformer.models.gemma2 import Gemma2, Gemma2Config

SETTINGS = gemma2.SETTINGS.variant(
    Gemma2Config,
    "Gemma3ForCausalLM",
    required={"attn_logit_softcapping": None},
    fixed={"qk_norm": True},
    defaults={
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "max_position_embeddings": 131072,
    },
)


def config_of(settings: Settings) -> Gemma2Config:
    """Return our configuration of a Gemma 3, whose local layers have a rotary base of their own."""
    rope = settings.part("rope_parameters")
    local, full = rope.part(SLIDING), rope.part(FULL)
    for part in (local, full):
        part.choice("rope_type", {"default": None}, "default")
    local_base = local.number("rope_theta", settings.number("rope_local_base_freq", 10000.0))
    base = full.number("rope_theta", settings.number("rope_theta", 1e6))
    # SETTINGS reads one base, that of the other layers, at one of these two places
    rope_theta = {"rope_theta": base}
    values = {**settings.values, **rope_theta, "rope_parameters": {**full.values, **rope_theta}}
    config: Gemma2Config = SETTINGS.read(
        Settings(values, settings.place),
        local=local_layers(settings, settings.count("sliding_window_pattern", 6)),
        local_base=local_base,
    )
    return config


def settings_of(config: Gemma2Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    bases = {SLIDING: config.local_base, FULL: config.rotary_base}
    rope = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()}
    return SETTINGS.written(config, layer_types=layer_types(config), rope_parameters=rope)


def rows(config: Gemma2Config) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    yield from gemma2.rows(config)
    yield from gain_rows(config, added=1.0)


GEMMA3 = Family("gemma3_text", Gemma2, config_of, settings_of, rows, tensor_name, fit_head)
