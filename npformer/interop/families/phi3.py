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

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import llama_table, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.interop.families.settings_table import SettingRow, or_null
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

SETTINGS = llama_table(
    GPTConfig,
    "phi3",
    "Phi3",
    SettingRow(or_null(Settings.count), "window", "sliding_window"),
    SettingRow(None, "dropout", ("resid_pdrop", "embd_pdrop")),
    defaults={"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
    bias=False,
)


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


PHI3 = Family("phi3", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, with_head)
