"""Qwen2, a Llama with biases of queries, keys and values (models/gpt/).

Nothing else has biases. The files carry the settings of a sliding window that is not in use; one that is in
use is refused.

Source: Yang et al. 2024, "Qwen2 technical report"; https://huggingface.co/docs/transformers/model_doc/qwen2.
"""

from __future__ import annotations

from npformer.interop.families.family import Family
from npformer.interop.families.llama import LLAMA_LIKE, rows, tensor_name
from npformer.interop.families.parts import fit_head
from npformer.interop.families.windows import require_no_windows
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

SETTINGS = LLAMA_LIKE.variant(
    GPTConfig,
    "Qwen2ForCausalLM",
    fixed={"bias": False, "qkv_bias": True},
    defaults={"num_key_value_heads": 32, "max_position_embeddings": 32768},
)


def config_of(settings: Settings) -> GPTConfig:
    """Return our configuration, and refuse sliding windows."""
    require_no_windows(settings, first=settings.index("max_window_layers", 28))
    config: GPTConfig = SETTINGS.read(settings)
    return config


QWEN2 = Family("qwen2", GPT, config_of, SETTINGS.written, rows, tensor_name, fit_head)
