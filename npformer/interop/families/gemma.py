"""Gemma 1, 2 and 3 (text): https://huggingface.co/docs/transformers/model_doc/gemma, .../gemma2, .../gemma3.

The names are those of Llama. A file has the gain of a norm minus 1, so that an untrained norm is all zeros;
our gain is 1 more. From Gemma 2 on, a layer has four norms, and `layer_types` says which layers have the
window (models/gemma.py). "gelu" in the files of Gemma 1 means the tanh GELU.

Of Gemma 3, the language model by itself is read (`gemma3_text`), and not the one that reads pictures.

Source: Gemma team 2024, "Gemma"; 2024, "Gemma 2"; 2025, "Gemma 3".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import NORMS, decoder_config, settings_of, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gemma import Gemma, Gemma2, Gemma2Config, GemmaConfig
from npformer.validation import short

# the settings that a file may leave out
DEFAULTS = {"head_dim": 256, "max_position_embeddings": 8192, "tie_word_embeddings": True}
FOUR_NORMS = {
    "norm1": "input_layernorm",
    "after1": "post_attention_layernorm",
    "norm2": "pre_feedforward_layernorm",
    "after2": "post_feedforward_layernorm",
}
TYPES = ("sliding_attention", "full_attention")  # of local layers, and of the others


def gemma_config_of(settings: Settings) -> GemmaConfig:
    """Return our configuration of a Gemma 1.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    gate = settings.choice("hidden_act", {"gelu": "geglu_tanh", "gelu_pytorch_tanh": "geglu_tanh"}, "gelu")
    config: GemmaConfig = decoder_config(_checked(settings), GemmaConfig, defaults=DEFAULTS, activation=gate)
    return config


def gemma2_config_of(settings: Settings) -> Gemma2Config:
    """Return our configuration of a Gemma 2, with the errors of gemma_config_of."""
    base = settings.part("rope_parameters").number("rope_theta", settings.number("rope_theta", 10000.0))
    caps = {"score_cap": _cap(settings, "attn_logit_softcapping", 50.0)}
    caps |= {"logit_cap": _cap(settings, "final_logit_softcapping", 30.0)}
    return _later_config(settings, DEFAULTS, every=2, local_base=base, **caps)


def gemma3_config_of(settings: Settings) -> Gemma2Config:
    """Return our configuration of a Gemma 3, with the errors of gemma_config_of."""
    settings.require("attn_logit_softcapping", None)
    rope = settings.part("rope_parameters")
    far, near = rope.part("full_attention"), rope.part("sliding_attention")
    near.choice("rope_type", {"default": None}, "default")
    base = near.number("rope_theta", settings.number("rope_local_base_freq", 10000.0))
    theta = far.number("rope_theta", settings.number("rope_theta", 1e6))
    values = {**settings.values, "rope_parameters": {**far.values, "rope_theta": theta}}
    return _later_config(
        Settings(values, settings.place),
        DEFAULTS | {"max_position_embeddings": 131072},
        every=settings.count("sliding_window_pattern", 6),
        local_base=base,
        qk_norm=True,
        logit_cap=_cap(settings, "final_logit_softcapping", None),
    )


def _later_config(settings: Settings, defaults: dict[str, Any], every: int, **others: Any) -> Gemma2Config:
    """Return our configuration of a Gemma 2 or 3, where by default every n-th layer looks at all tokens."""
    n_layers = settings.count("num_hidden_layers")
    types = settings.values.get("layer_types")
    if types is None:
        types = [TYPES[(i + 1) % every == 0] for i in range(n_layers)]
    if not isinstance(types, list) or len(types) != n_layers or any(each not in TYPES for each in types):
        raise UserError(
            f"layer_types is {short(types)} in {settings.place}: it must have {TYPES[0]!r} or {TYPES[1]!r} "
            f"for each of the {n_layers} layers"
        )
    gate = settings.values.get("hidden_activation") or "gelu_pytorch_tanh"
    config: Gemma2Config = decoder_config(
        _checked(Settings({**settings.values, "hidden_act": gate}, settings.place)),
        Gemma2Config,
        defaults=defaults | {"num_key_value_heads": 4},
        query_scale=settings.count("query_pre_attn_scalar", 256),
        local=tuple(i for i in range(n_layers) if types[i] == TYPES[0]),
        local_window=settings.count("sliding_window", 4096),
        **others,
    )
    return config


def _checked(settings: Settings) -> Settings:
    """Refuse what no Gemma of ours has."""
    settings.require("attention_bias", False, default=False)
    settings.require("use_bidirectional_attention", False, default=False)
    return settings


def _cap(settings: Settings, name: str, default: float | None) -> float | None:
    """Return a cap, which is None if the file has null there."""
    if name not in settings.values:
        return default
    return settings.number(name) if settings.has(name) else None


def gemma_settings(config: GemmaConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from gemma_config_of."""
    return settings_of(config, "gemma", "Gemma")


def gemma2_settings(config: Gemma2Config) -> dict[str, Any]:
    """Return the content of a config.json, the way back from gemma2_config_of."""
    return _later_settings(config, "gemma2", "Gemma2") | {"attn_logit_softcapping": config.score_cap}


def gemma3_settings(config: Gemma2Config) -> dict[str, Any]:
    """Return the content of a config.json, the way back from gemma3_config_of."""
    bases = dict(zip(TYPES, (config.local_base, config.rotary_base), strict=True))
    rope = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()}
    return _later_settings(config, "gemma3_text", "Gemma3") | {"rope_parameters": rope}


def _later_settings(config: Gemma2Config, family: str, name: str) -> dict[str, Any]:
    settings = settings_of(config, family, name)
    return settings | {
        "hidden_activation": settings.pop("hidden_act"),
        "query_pre_attn_scalar": config.query_scale,
        "final_logit_softcapping": config.logit_cap,
        "sliding_window": config.local_window,
        "layer_types": [TYPES[i not in config.local] for i in range(config.n_layers)],
        "attention_bias": False,
    }


def gemma_rows(config: GemmaConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file of Gemma 1."""
    yield from llama_rows(config, NORMS, added=1.0)


def rows(config: Gemma2Config) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file of Gemma 2 or 3."""
    for row in llama_rows(config, FOUR_NORMS, added=1.0):
        is_capped = row.ours == "output.weight" and config.logit_cap is not None
        yield replace(row, ours="output.output.weight") if is_capped else row
    for i in range(config.n_layers if config.qk_norm else 0):
        ours, theirs = f"layers.{i}.self_attention", f"model.layers.{i}.self_attn"
        for gain, norm in {"query_gain": "q_norm", "key_gain": "k_norm"}.items():
            yield WeightRow(f"{ours}.{gain}", (config.d_head,), (f"{theirs}.{norm}.weight",), added=1.0)


GEMMA = Family("gemma", Gemma, gemma_config_of, gemma_settings, gemma_rows, tensor_name, with_head)
GEMMA2 = Family("gemma2", Gemma2, gemma2_config_of, gemma2_settings, rows, tensor_name, with_head)
GEMMA3 = Family("gemma3_text", Gemma2, gemma3_config_of, gemma3_settings, rows, tensor_name, with_head)
