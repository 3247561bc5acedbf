"""Mixtral, a Mistral with mixtures of experts: https://huggingface.co/docs/transformers/model_doc/mixtral.

`num_experts_per_tok` is the number of experts that a token passes through, and the weights of its experts sum
to 1. Every expert has its own tensors, and the router is called `gate`. What the layers compute is in
npformer/models/mixture.py. The noise of the router, which acts only in training, is left out.

Source: Jiang et al. 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import llama_table, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import linear_rows, with_head
from npformer.interop.families.settings_table import SettingRow, count, number, or_null
from npformer.interop.settings_file import Settings
from npformer.models.mixture import Mixture, MixtureConfig

SETTINGS = llama_table(
    MixtureConfig,
    "mixtral",
    "Mixtral",
    count("n_experts", "num_local_experts", 8),
    count("top_k", "num_experts_per_tok", 2),
    SettingRow(or_null(Settings.count), "window", "sliding_window"),
    number("balance_weight", "router_aux_loss_coef", 0.001),
    defaults={
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e6,
    },
)
PARTS = {"gate": "w1", "value": "w3", "outer": "w2"}  # of an expert, in our names and in theirs


def rows(config: MixtureConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from mixture_rows(config, "block_sparse_moe", PARTS)


def mixture_rows(config: MixtureConfig, name: str, parts: Mapping[str, str]) -> Iterator[WeightRow]:
    """Yield the rows of a Llama with mixtures of experts in place of feed-forward networks.

    Args:
        config: Our configuration.
        name: Their name of the mixture.
        parts: Our name and their name of each matrix of an expert.
    """
    d, f = config.d_model, config.expert_width
    for row in llama_rows(config):
        stack, *below = row.ours.split(".")
        is_network = stack == "layers" and below[1] == "feed_forward"
        if not is_network or int(below[0]) in config.dense:
            yield row
    for i in range(config.n_layers):
        if i in config.dense:
            continue
        ours, theirs = f"layers.{i}.feed_forward", f"model.layers.{i}.{name}"
        yield from linear_rows(f"{ours}.router", [f"{theirs}.gate"], d, config.n_experts, bias=False)
        for expert in range(config.n_experts):
            for part, tensor in parts.items():
                size = (f, d) if part == "outer" else (d, f)
                tensors = [f"{theirs}.experts.{expert}.{tensor}"]
                yield from linear_rows(f"{ours}.experts.{expert}.{part}", tensors, *size, bias=False)


MIXTRAL = Family("mixtral", Mixture, SETTINGS.read, SETTINGS.written, rows, tensor_name, with_head)
