"""SmolLM3, a Llama with layers without positions (models/smollm3.py).

`no_rope_layers` has a number for each layer: 0 means that queries and keys are not rotated there, and 1 that
they are. Without it, every `no_rope_layer_interval`-th layer is without positions. The output is usually the
table of tokens. The tensors are those of Llama.

Source: Bakouch et al. 2025; https://huggingface.co/docs/transformers/model_doc/smollm3.
"""

from __future__ import annotations

from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family
from npformer.interop.families.llama import BIAS, LLAMA_LIKE, rows, tensor_name
from npformer.interop.families.parts import fit_head
from npformer.interop.families.windows import require_no_windows
from npformer.interop.settings_file import Settings
from npformer.models.smollm3 import SmolLM3, SmolLM3Config
from npformer.validation import has_type, short

SETTINGS = LLAMA_LIKE.variant(
    SmolLM3Config,
    "SmolLM3ForCausalLM",
    BIAS,
    defaults={
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "rope_theta": 2e6,
        "tie_word_embeddings": True,
    },
)


def config_of(settings: Settings) -> SmolLM3Config:
    """Return our configuration, and refuse sliding windows, which the layers without positions would have."""
    require_no_windows(settings)
    config: SmolLM3Config = SETTINGS.read(settings, unrotated=_unrotated(settings))
    return config


def _unrotated(settings: Settings) -> tuple[int, ...]:
    """Return the layers without positions."""
    n_layers = settings.count("num_hidden_layers")
    rotated = settings.values.get("no_rope_layers")
    if rotated is None:
        every = settings.count("no_rope_layer_interval", 4)
        return tuple(range(every - 1, n_layers, every))
    if not has_type(rotated, list[int]) or len(rotated) < n_layers:
        raise UserError(
            f"no_rope_layers is {short(rotated)} in {settings.place}: it must have 0 or 1 for each of the "
            f"{n_layers} layers"
        )
    return tuple(layer for layer in range(n_layers) if not rotated[layer])


def settings_of(config: SmolLM3Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    rotated = [int(layer not in config.unrotated) for layer in range(config.n_layers)]
    return SETTINGS.written(config, no_rope_layers=rotated)


SMOLLM3 = Family("smollm3", SmolLM3, config_of, settings_of, rows, tensor_name, fit_head)
