"""Mistral, a Llama with a window: https://huggingface.co/docs/transformers/model_doc/mistral.

A token attends to itself and to the `sliding_window` - 1 tokens before it. Over L layers, what it reads
reaches back L times as far. All else, the names of the tensors included, is that of a Llama without biases.
The first model had the window, and later ones have `null` there.

Source: Jiang et al. 2023, section 2.
"""

from __future__ import annotations

from npformer.interop.families.family import Family
from npformer.interop.families.llama import llama_table, rows, tensor_name
from npformer.interop.families.parts import with_head
from npformer.interop.families.settings_table import SettingRow, or_null
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

SETTINGS = llama_table(
    GPTConfig,
    "mistral",
    "Mistral",
    SettingRow(or_null(Settings.count), "window", "sliding_window", 4096),
    defaults={"num_key_value_heads": 8, "max_position_embeddings": 131072},
    bias=False,
)
MISTRAL = Family("mistral", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, with_head)
