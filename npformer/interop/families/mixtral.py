"""Mixtral, a Mistral with mixtures of experts (models/mixture.py).

A token passes through the `num_experts_per_tok` experts to which the router gives the largest weights, after
a softmax; their weights are divided by their sum. An expert is a feed-forward network of a Llama with tensors
of its own, and the router is called `gate`. Its noise, which acts only in training, is left out. Most models
have no window.

Source: Jiang et al. 2024; https://huggingface.co/docs/transformers/model_doc/mixtral.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import LLAMA_LIKE, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import fit_head, linear_rows
from npformer.interop.families.settings_table import count, count_or_null, number
from npformer.models.mixture import Mixture, MixtureConfig

SETTINGS = LLAMA_LIKE.variant(
    MixtureConfig,
    "MixtralForCausalLM",
    count("n_experts", "num_local_experts", 8),
    count("top_k", "num_experts_per_tok", 2),
    count_or_null("window", "sliding_window"),
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
    """Yield which tensors of a file hold each of our parameters."""
    yield from mixture_rows(config, "block_sparse_moe", PARTS)


def mixture_rows(config: MixtureConfig, name: str, parts: Mapping[str, str]) -> Iterator[WeightRow]:
    """Yield the rows of a Llama with mixtures of experts instead of feed-forward networks.

    Args:
        config: Our configuration.
        name: Their name of the mixture.
        parts: Our name and their name of each matrix of an expert.
    """
    d, f = config.d_model, config.expert_width
    for row in llama_rows(config):
        network = re.match(r"layers\.(\d+)\.feed_forward", row.ours)
        if network is None or int(network[1]) in config.dense:
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


MIXTRAL = Family("mixtral", Mixture, SETTINGS.read, SETTINGS.written, rows, tensor_name, fit_head)
