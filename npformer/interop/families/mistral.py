"""Mistral, a Llama with a sliding window (models/gpt/).

A token attends to itself and to the `sliding_window` - 1 tokens before it. Over L layers, what it reads
reaches back L times as far. All else, the names of the tensors included, is that of a Llama without biases.
The first model had the window, and later ones have `null` there.

Source: Jiang et al. 2023, section 2; https://huggingface.co/docs/transformers/model_doc/mistral.
"""

from __future__ import annotations

from npformer.interop.families.family import Family
from npformer.interop.families.llama import LLAMA_LIKE, rows, tensor_name
from npformer.interop.families.parts import fit_head
from npformer.interop.families.settings_table import count_or_null
from npformer.models.gpt import GPT, GPTConfig

SETTINGS = LLAMA_LIKE.variant(
    GPTConfig,
    "MistralForCausalLM",
    count_or_null("window", "sliding_window", 4096),
    fixed={"bias": False},
    defaults={"num_key_value_heads": 8, "max_position_embeddings": 131072},
)
MISTRAL = Family("mistral", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, fit_head)
