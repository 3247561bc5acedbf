"""Phi-3, a Llama with fewer tensors: https://huggingface.co/docs/transformers/model_doc/phi3.

The matrices of queries, keys and values are the rows of one tensor, as they are the columns of one matrix of
ours. The gate and the value of the feed-forward network are the rows of another one, which here belong to two
parameters. There are no biases, and some models have a window.

The scaling of the models that read 128,000 tokens (`longrope`) is refused, and so are rotary positions of a
part of each head (Phi-4 mini).

Source: Abdin et al. 2024, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import decoder_config, settings_of, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.mistral import window_of
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

DEFAULTS = {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5}


def config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of a Phi-3.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    config: GPTConfig = decoder_config(settings, defaults=DEFAULTS, bias=False, window=window_of(settings))
    return config


def phi3_settings(config: GPTConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop"), config.dropout)
    return settings_of(config, "phi3", "Phi3", sliding_window=config.window, **dropout)


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    f = config.hidden_width
    for row in llama_rows(config):
        layer, _, part = row.theirs[0].rpartition(".layers.")[2].partition(".")
        prefix = f"model.layers.{layer}"
        if part == "self_attn.q_proj.weight":
            yield replace(row, theirs=(f"{prefix}.self_attn.qkv_proj.weight",), widths=None)
        elif part in ("mlp.gate_proj.weight", "mlp.up_proj.weight"):
            first = 0 if "gate" in part else f
            theirs = (f"{prefix}.mlp.gate_up_proj.weight",)
            yield replace(row, theirs=theirs, first_rows=(first,), n_rows=2 * f)
        else:
            yield row


PHI3 = Family("phi3", GPT, config_of, phi3_settings, rows, tensor_name, with_head)
