"""Qwen3-MoE, a Qwen3 with mixtures of experts: https://huggingface.co/docs/transformers/model_doc/qwen3_moe.

The weights of a token's experts sum to 1 only with `norm_topk_prob`. `mlp_only_layers` names the layers with
one feed-forward network. The tensors are those of Qwen3, and of an expert those of such a network; the router
is called `gate`, as a part of each expert is. What the layers compute is in npformer/models/mixture.py.

Source: Yang et al. 2025.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import gain_rows, llama_table, require_no_windows, tensor_name
from npformer.interop.families.mixtral import mixture_rows
from npformer.interop.families.parts import with_head
from npformer.interop.families.settings_table import SettingRow, count, flag, number
from npformer.interop.settings_file import Settings
from npformer.models.mixture import Mixture, MixtureConfig
from npformer.validation import has_type, short


def _layers(settings: Settings, name: str, default: list[int]) -> tuple[int, ...]:
    """Return the numbers of layers in a list of a file."""
    layers = settings.values.get(name) or default
    if not has_type(layers, list[int]):
        raise UserError(
            f"{name} is {short(layers)} in {settings.place}: it must be a list of numbers of layers"
        )
    n_layers = settings.count("num_hidden_layers")
    return tuple(sorted({layer for layer in layers if 0 <= layer < n_layers}))


SETTINGS = llama_table(
    MixtureConfig,
    "qwen3_moe",
    "Qwen3Moe",
    count("n_experts", "num_experts", lambda file: file.count("num_local_experts", 128)),
    count("top_k", "num_experts_per_tok", 8),
    flag("renormalize", "norm_topk_prob", False),
    count("d_expert", "moe_intermediate_size", 768),
    SettingRow(_layers, "dense", "mlp_only_layers", []),
    number("balance_weight", "router_aux_loss_coef", 0.001),
    only={"attention_bias": False, "decoder_sparse_step": 1},
    defaults={"num_key_value_heads": 4, "max_position_embeddings": 32768},
    qk_norm=True,
)
PARTS = {"gate": "gate_proj", "value": "up_proj", "outer": "down_proj"}  # of an expert


def config_of(settings: Settings) -> MixtureConfig:
    """Return our configuration of a Qwen3-MoE, and refuse sliding windows."""
    require_no_windows(settings, settings.count("num_hidden_layers"), full=0)
    config: MixtureConfig = SETTINGS.read(settings)
    return config


def rows(config: MixtureConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from mixture_rows(config, "mlp", PARTS)
    yield from gain_rows(config)


QWEN3_MOE = Family("qwen3_moe", Mixture, config_of, SETTINGS.written, rows, tensor_name, with_head)
