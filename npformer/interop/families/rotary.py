"""RotaryTable: the settings of a family with rotary positions, for which a config.json has an object.

It is `rope_parameters`. In older files it is `rope_scaling`, has "type" for "rope_type", and the base of the
angles stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from npformer.errors import UserError
from npformer.interop.families.settings_table import SettingTable
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPTConfig

TYPES = {"default": "none", "llama3": "llama3"}

T = TypeVar("T")


@dataclass(frozen=True)
class RotaryTable(SettingTable):
    """The settings of a family whose layers all have the same rotary positions, for whole heads."""

    def read(self, settings: Settings, **others: Any) -> Any:
        """Return our configuration, as SettingTable.read does."""
        settings = Settings({**self.defaults, **settings.values}, settings.place)
        config = super().read(settings, **_rotary_settings(settings), **others)
        settings.require_table("max_position_embeddings", config.context, config.d_head // 2)
        return config

    def written(self, config: Any, **others: Any) -> dict[str, Any]:
        """Return the content of a config.json, as SettingTable.written does."""
        return super().written(config, **{"rope_parameters": _rope_parameters(config)} | others)


def read_rope(settings: Settings, types: Mapping[str, T]) -> tuple[Settings, T]:
    """Return the object of the rotary positions, and our value of its type.

    Args:
        settings: The settings of a config.json.
        types: Our value for each type that npformer supports.
    """
    rope = settings.part("rope_scaling" if settings.has("rope_scaling") else "rope_parameters")
    return rope, rope.choice("rope_type" if rope.has("rope_type") else "type", types, "default")


def _rotary_settings(settings: Settings) -> dict[str, Any]:
    """Return our settings of rotary positions."""
    rope, scaling = read_rope(settings, TYPES)
    if any(isinstance(value, dict) for value in rope.values.values()):
        raise UserError(
            f"{rope.place} differs from layer to layer: npformer has one for all, use another model"
        )
    for each in (settings, rope):
        if each.number("partial_rotary_factor", 1.0) != 1.0:
            raise UserError(
                f"{each.place} asks for rotary positions of a part of each head, which npformer does not "
                "support: use another model"
            )
    base = rope.number("rope_theta", settings.number("rope_theta", 10000.0))
    ours = {"rotary_base": base, "rotary_scaling": scaling}
    if scaling == "llama3":
        context = settings.count("max_position_embeddings", 2048)
        ours |= {
            "rotary_factor": rope.number("factor"),
            "rotary_low_factor": rope.number("low_freq_factor"),
            "rotary_high_factor": rope.number("high_freq_factor"),
            "rotary_original_context": rope.count("original_max_position_embeddings", context),
        }
    return ours


def _rope_parameters(config: GPTConfig) -> dict[str, Any]:
    """Return the object, the way back from _rotary_settings."""
    if config.scaling is None:
        return {"rope_type": "default", "rope_theta": config.rotary_base}
    return {
        "rope_type": "llama3",
        "rope_theta": config.rotary_base,
        "factor": config.rotary_factor,
        "low_freq_factor": config.rotary_low_factor,
        "high_freq_factor": config.rotary_high_factor,
        "original_max_position_embeddings": config.rotary_original_context,
    }
