"""Gemma 1, a Llama whose embeddings are multiplied by sqrt(D) (models/gemma.py).

The names are those of Llama. A file has the gain of a norm minus 1, so that an untrained norm is all zeros;
our gain is 1 more. "gelu" in the files means the tanh GELU.

Source: Gemma team 2024, "Gemma"; https://huggingface.co/docs/transformers/model_doc/gemma.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import NORMS, llama_table, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import with_head
from npformer.interop.families.settings_table import SettingRow
from npformer.models.gemma import Gemma, GemmaConfig

# the settings that a file may leave out
DEFAULTS = {"head_dim": 256, "max_position_embeddings": 8192, "tie_word_embeddings": True}
ONLY = {"attention_bias": False, "use_bidirectional_attention": False}
GATES = {"gelu_pytorch_tanh": "geglu_tanh", "gelu": "geglu_tanh"}
SETTINGS = llama_table(
    GemmaConfig,
    "gemma",
    "Gemma",
    SettingRow(GATES, "activation", "hidden_act", "gelu"),
    only=ONLY,
    defaults=DEFAULTS,
)


def rows(config: GemmaConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from llama_rows(config, NORMS, added=1.0)


GEMMA = Family("gemma", Gemma, SETTINGS.read, SETTINGS.written, rows, tensor_name, with_head)
