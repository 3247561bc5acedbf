"""Qwen3-MoE, a Qwen3 with mixtures of experts (models/mixture.py).

A token passes through k of n experts, whose weights sum to 1 only with `norm_topk_prob`. `mlp_only_layers`
names the layers with one feed-forward network. An expert has the tensors of a feed-forward network. The
router is called `gate`, and the gate of an expert `gate_proj`.

Source: Yang et al. 2025; https://huggingface.co/docs/transformers/model_doc/qwen3_moe.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import LLAMA_LIKE, tensor_name
from npformer.interop.families.mixtral import mixture_rows
from npformer.interop.families.parts import fit_head
from npformer.interop.families.qwen3 import gain_rows
from npformer.interop.families.settings_table import SettingRow, count, flag, number
from npformer.interop.families.windows import require_no_windows
from npformer.interop.settings_file import Settings
from npformer.models.mixture import Mixture, MixtureConfig
from npformer.validation import has_type, short


def _layers(settings: Settings, name: str, default: list[int]) -> tuple[int, ...]:
    """Return the numbers of layers in a list of a file. Numbers that no layer has say nothing there."""
    layers = settings.values.get(name) or default
    if not has_type(layers, list[int]):
        raise UserError(
            f"{name} is {short(layers)} in {settings.place}: it must be a list of numbers of layers"
        )
    n_layers = settings.count("num_hidden_layers")
    return tuple(sorted({layer for layer in layers if 0 <= layer < n_layers}))


SETTINGS = LLAMA_LIKE.variant(
    MixtureConfig,
    "Qwen3MoeForCausalLM",
    # version 5 of transformers writes the other name
    count("n_experts", "num_experts", lambda file: file.count("num_local_experts", 128)),
    count("top_k", "num_experts_per_tok", 8),
    flag("renormalize", "norm_topk_prob", False),
    count("d_expert", "moe_intermediate_size", 768),
    SettingRow(reader=_layers, ours="dense", theirs="mlp_only_layers", default=[]),
    number("balance_weight", "router_aux_loss_coef", 0.001),
    required={"attention_bias": False, "decoder_sparse_step": 1},
    fixed={"qk_norm": True},
    defaults={"num_key_value_heads": 4, "max_position_embeddings": 32768},
)
PARTS = {"gate": "gate_proj", "value": "up_proj", "outer": "down_proj"}  # of an expert


def config_of(settings: Settings) -> MixtureConfig:
    """Return our configuration, and refuse sliding windows, which all layers would have."""
    require_no_windows(settings)
    config: MixtureConfig = SETTINGS.read(settings)
    return config


def rows(config: MixtureConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    yield from mixture_rows(config, "mlp", PARTS)
    yield from gain_rows(config)


QWEN3_MOE = Family("qwen3_moe", Mixture, config_of, SETTINGS.written, rows, tensor_name, fit_head)
