"""Qwen2, a Llama with three biases: https://huggingface.co/docs/transformers/model_doc/qwen2.

Queries, keys and values have biases, and nothing else has. The files carry the settings of a sliding window
that is not in use; one that is in use is refused.

Source: Yang et al. 2024, "Qwen2 technical report".
"""

from __future__ import annotations

from npformer.interop.families.family import Family
from npformer.interop.families.llama import llama_table, require_no_windows, rows, tensor_name
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

SETTINGS = llama_table(GPTConfig, "qwen2", "Qwen2", bias=False, qkv_bias=True)


def config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of a Qwen2, and refuse sliding windows."""
    config: GPTConfig = SETTINGS.read(settings)
    require_no_windows(settings, config.n_layers)
    return config


QWEN2 = Family("qwen2", GPT, config_of, SETTINGS.written, rows, tensor_name, with_head)
