"""Mixtral and Qwen3-MoE: https://huggingface.co/docs/transformers/model_doc/mixtral and .../qwen3_moe.

Mixtral is a Mistral, and Qwen3-MoE a Qwen3, whose feed-forward networks are mixtures of experts
(models/mixture.py). `num_experts_per_tok` is the number of experts that a token passes through. The weights
of its experts sum to 1, in Qwen3-MoE only with `norm_topk_prob`. There, `mlp_only_layers` names the layers
with one network. Every expert has its own tensors, and the router is called `gate`, as a part of each expert
is in Qwen3-MoE.

Source: Jiang et al. 2024; Yang et al. 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import decoder_config, require_no_windows, settings_of, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.mistral import window_of
from npformer.interop.families.parts import with_head
from npformer.interop.families.qwen3 import gain_rows
from npformer.interop.settings_file import Settings
from npformer.models.mixture import Mixture, MixtureConfig
from npformer.validation import has_type, short

# the settings that a file may leave out
MIXTRAL_DEFAULTS = {
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e6,
}
QWEN3_MOE_DEFAULTS = {"num_key_value_heads": 4, "max_position_embeddings": 32768}
# the parts of an expert: ours, and theirs
MIXTRAL_PARTS = {"gate": "w1", "value": "w3", "outer": "w2"}
QWEN3_MOE_PARTS = {"gate": "gate_proj", "value": "up_proj", "outer": "down_proj"}


def mixtral_config_of(settings: Settings) -> MixtureConfig:
    """Return our configuration of a Mixtral. The noise of its router, which acts in training, is left out.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    config: MixtureConfig = decoder_config(
        settings,
        MixtureConfig,
        defaults=MIXTRAL_DEFAULTS,
        bias=False,
        window=window_of(settings),
        n_experts=settings.count("num_local_experts", 8),
        top_k=settings.count("num_experts_per_tok", 2),
        balance_weight=settings.number("router_aux_loss_coef", 0.001),
    )
    return config


def qwen3_moe_config_of(settings: Settings) -> MixtureConfig:
    """Return our configuration of a Qwen3-MoE.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("attention_bias", False, default=False)
    settings.require("decoder_sparse_step", 1, default=1)
    n_layers = settings.count("num_hidden_layers")
    require_no_windows(settings, n_layers)
    config: MixtureConfig = decoder_config(
        settings,
        MixtureConfig,
        defaults=QWEN3_MOE_DEFAULTS,
        bias=False,
        qk_norm=True,
        n_experts=settings.count("num_experts", settings.count("num_local_experts", 128)),
        top_k=settings.count("num_experts_per_tok", 8),
        renormalize=settings.flag("norm_topk_prob", False),
        d_expert=settings.count("moe_intermediate_size", 768),
        dense=_dense(settings, n_layers),
        balance_weight=settings.number("router_aux_loss_coef", 0.001),
    )
    return config


def _dense(settings: Settings, n_layers: int) -> tuple[int, ...]:
    """Return the layers with one feed-forward network."""
    layers = settings.values.get("mlp_only_layers") or []
    if not has_type(layers, list[int]):
        raise UserError(
            f"mlp_only_layers is {short(layers)} in {settings.place}: it must be a list of numbers of layers"
        )
    return tuple(sorted({layer for layer in layers if 0 <= layer < n_layers}))


def mixtral_settings(config: MixtureConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from mixtral_config_of."""
    return settings_of(
        config,
        "mixtral",
        "Mixtral",
        sliding_window=config.window,
        num_local_experts=config.n_experts,
        num_experts_per_tok=config.top_k,
        router_aux_loss_coef=config.balance_weight,
    )


def qwen3_moe_settings(config: MixtureConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from qwen3_moe_config_of."""
    return settings_of(
        config,
        "qwen3_moe",
        "Qwen3Moe",
        attention_bias=False,
        num_experts=config.n_experts,
        num_experts_per_tok=config.top_k,
        norm_topk_prob=config.renormalize,
        moe_intermediate_size=config.expert_width,
        mlp_only_layers=list(config.dense),
        decoder_sparse_step=1,
        router_aux_loss_coef=config.balance_weight,
    )


def mixtral_rows(config: MixtureConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a Mixtral."""
    yield from _other_rows(config)
    for layer in range(config.n_layers):
        yield from _mixture_rows(config, layer, "block_sparse_moe", MIXTRAL_PARTS)


def qwen3_moe_rows(config: MixtureConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a Qwen3-MoE."""
    yield from _other_rows(config)
    yield from gain_rows(config)
    for layer in range(config.n_layers):
        if layer not in config.dense:
            yield from _mixture_rows(config, layer, "mlp", QWEN3_MOE_PARTS)


def _other_rows(config: MixtureConfig) -> Iterator[WeightRow]:
    """Yield the rows of a Llama, without the feed-forward networks that are mixtures."""
    for row in llama_rows(config):
        stack, *below = row.ours.split(".")
        is_network = stack == "layers" and below[1] == "feed_forward"
        if not is_network or int(below[0]) in config.dense:
            yield row


def _mixture_rows(config: MixtureConfig, layer: int, name: str, parts: dict[str, str]) -> Iterator[WeightRow]:
    """Yield the rows of the router and of the experts of a layer.

    Args:
        config: Our configuration.
        layer: The number of the layer.
        name: Their name of the mixture.
        parts: Our name and their name of each matrix of an expert.
    """
    d, f = config.d_model, config.expert_width
    ours, theirs = f"layers.{layer}.feed_forward", f"model.layers.{layer}.{name}"
    gate = (f"{theirs}.gate.weight",)
    yield WeightRow(f"{ours}.router.weight", (d, config.n_experts), gate, transpose=True)
    for expert in range(config.n_experts):
        for part, tensor in parts.items():
            shape = (f, d) if part == "outer" else (d, f)
            tensors = (f"{theirs}.experts.{expert}.{tensor}.weight",)
            yield WeightRow(f"{ours}.experts.{expert}.{part}.weight", shape, tensors, transpose=True)


MIXTRAL = Family(
    "mixtral", Mixture, mixtral_config_of, mixtral_settings, mixtral_rows, tensor_name, with_head
)
QWEN3_MOE = Family(
    "qwen3_moe", Mixture, qwen3_moe_config_of, qwen3_moe_settings, qwen3_moe_rows, tensor_name, with_head
)
