"""OLMo 2: https://huggingface.co/docs/transformers/model_doc/olmo2.

The names are those of Llama, but the norms belong behind the sublayers: `post_attention_layernorm` normalizes
what attention adds, and `post_feedforward_layernorm` what the feed-forward network adds. `q_norm` and
`k_norm` are gains for the whole projections, before they are split into heads (models/olmo2.py).

Source: OLMo team 2024.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import gain_rows, llama_table, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.models.gpt import GPTConfig
from npformer.models.olmo2 import Olmo2, Olmo2Config

SETTINGS = llama_table(
    Olmo2Config, "olmo2", "Olmo2", only={"attention_bias": False}, defaults={"rms_norm_eps": 1e-5}
)
NORMS = {"norm1": "post_attention_layernorm", "norm2": "post_feedforward_layernorm"}


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from llama_rows(config, NORMS)
    yield from gain_rows(config, whole=True)


OLMO2 = Family("olmo2", Olmo2, SETTINGS.read, SETTINGS.written, rows, tensor_name, with_head)
