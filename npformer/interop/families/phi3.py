"""Phi-3, a Llama with fewer tensors (models/gpt/).

The matrices of queries, keys and values are the rows of one tensor, as they are the columns of one matrix of
ours. The gate and the value of the feed-forward network are the rows of another one, which are two parameters
of ours. There are no biases, and some models have the window of a Mistral.

The scaling of the models that read 128,000 tokens (`longrope`) is refused, and so are rotary positions of a
part of each head (Phi-4 mini).

Source: Abdin et al. 2024, section 2; https://huggingface.co/docs/transformers/model_doc/phi3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import LLAMA_LIKE, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import fit_head
from npformer.interop.families.settings_table import count_or_null, written_only
from npformer.models.gpt import GPT, GPTConfig

SETTINGS = LLAMA_LIKE.variant(
    GPTConfig,
    "Phi3ForCausalLM",
    count_or_null("window", "sliding_window"),
    written_only("dropout", ("resid_pdrop", "embd_pdrop")),
    fixed={"bias": False},
    defaults={"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
)


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    f = config.hidden_width
    for row in llama_rows(config):
        tensor = re.sub(r"\.[qkv]_proj\.", ".qkv_proj.", row.theirs[0])
        tensor = re.sub(r"\.(gate|up)_proj\.", ".gate_up_proj.", tensor)
        if "feed_forward.gate" in row.ours or "feed_forward.value" in row.ours:
            first = 0 if "gate" in row.ours else f
            yield replace(row, theirs=(tensor,), first_rows=(first,), n_rows=2 * f)
        else:  # the other tensors are whole; the rows of qkv_proj have our order, so three names become one
            yield replace(row, theirs=(tensor,), widths=None)


PHI3 = Family("phi3", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, fit_head)
