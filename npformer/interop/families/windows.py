"""The sliding windows of a file: the layers that have one, and the refusal of windows."""

from __future__ import annotations

from typing import Any

from npformer.errors import UserError
from npformer.interop.settings_file import Settings
from npformer.validation import short

SLIDING, FULL = "sliding_attention", "full_attention"  # the types of layers, with a window and without


def local_layers(settings: Settings, every: int) -> tuple[int, ...]:
    """Return the layers of a file that have a window: by default, all but every n-th layer.

    Args:
        settings: The settings of a config.json.
        every: The number n.
    """
    n_layers = settings.count("num_hidden_layers")
    types = settings.values.get("layer_types")
    if types is None:
        types = [FULL if (i + 1) % every == 0 else SLIDING for i in range(n_layers)]
    if not isinstance(types, list) or len(types) != n_layers or any(i not in (SLIDING, FULL) for i in types):
        raise UserError(
            f"layer_types is {short(types)} in {settings.place}: it must have {SLIDING!r} or {FULL!r} "
            f"for each of the {n_layers} layers"
        )
    return tuple(i for i in range(n_layers) if types[i] == SLIDING)


def layer_types(config: Any) -> list[str]:
    """Return the setting layer_types, the way back from local_layers."""
    return [SLIDING if i in config.local else FULL for i in range(config.n_layers)]


def require_no_windows(settings: Settings, first: int = 0) -> None:
    """Refuse a file in which some layers have a sliding window that is in use.

    Args:
        settings: The settings of a config.json.
        first: The first layer with a window, if the file does not name the type of each layer.
    """
    types = settings.values.get("layer_types")
    if types is None:
        in_use = settings.flag("use_sliding_window", False) and first < settings.count("num_hidden_layers")
    else:
        in_use = not isinstance(types, list) or any(each != FULL for each in types)
    if in_use:
        raise UserError(
            f"{settings.place} asks for attention with a sliding window in some layers, which npformer does "
            "not support in this family: use another model"
        )
