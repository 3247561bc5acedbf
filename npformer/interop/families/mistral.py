"""Mistral, a Llama with a window: https://huggingface.co/docs/transformers/model_doc/mistral.

A token attends to itself and to the `sliding_window` - 1 tokens before it. Over L layers, what it reads
reaches back L times as far. All else, the names of the tensors included, is that of a Llama without biases.
The first model had the window, and later ones have `null` there.

Source: Jiang et al. 2023, section 2.
"""

from __future__ import annotations

from typing import Any

from npformer.interop.families.family import Family
from npformer.interop.families.llama import decoder_config, rows, settings_of, tensor_name
from npformer.interop.families.parts import with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

# the settings that a file may leave out
DEFAULTS = {"num_key_value_heads": 8, "max_position_embeddings": 131072}
WINDOW = 4096


def config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of a Mistral.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    window = window_of(settings, WINDOW)
    config: GPTConfig = decoder_config(settings, defaults=DEFAULTS, bias=False, window=window)
    return config


def window_of(settings: Settings, default: int | None = None) -> int | None:
    """Return the window of all layers, which is None if the file has null there.

    Args:
        settings: The settings.
        default: The window if the file does not mention it.
    """
    if "sliding_window" not in settings.values:
        return default
    return settings.count("sliding_window") if settings.has("sliding_window") else None


def mistral_settings(config: GPTConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return settings_of(config, "mistral", "Mistral", sliding_window=config.window)


MISTRAL = Family("mistral", GPT, config_of, mistral_settings, rows, tensor_name, with_head)
