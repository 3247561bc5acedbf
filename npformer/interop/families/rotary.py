"""RotaryTable: the settings of a family with rotary positions, for which a config.json has an object.

It is `rope_parameters`. In older files it is `rope_scaling` and has "type" for "rope_type"; the base of the
angles, and the part of each head that is rotated, stand beside it.
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
BASE = 10000.0  # of the angles, if a file does not say it

T = TypeVar("T")


@dataclass(frozen=True)
class RotaryTable(SettingTable):
    """The settings of a family whose layers all have the same rotary positions.

    Attributes:
        share: The part of each head that is rotated if a file does not say it. None: whole heads, always.
        beside: If there is a share, the names that base and part have beside the object in older files.
    """

    share: float | None = None
    beside: tuple[str, str] = ("rope_theta", "partial_rotary_factor")

    def read(self, settings: Settings, **others: Any) -> Any:
        """Return our configuration, as SettingTable.read does."""
        settings = Settings({**self.defaults, **settings.values}, settings.place)
        config = super().read(settings, **self._rotary_settings(settings), **others)
        settings.require_table("max_position_embeddings", config.context, config.d_head // 2)
        return config

    def written(self, config: Any, **others: Any) -> dict[str, Any]:
        """Return the content of a config.json, as SettingTable.written does."""
        rope = _rope_parameters(config)
        if self.share is not None:
            rope["partial_rotary_factor"] = config.rotary_share
        return super().written(config, **{"rope_parameters": rope} | others)

    def _rotary_settings(self, settings: Settings) -> dict[str, Any]:
        """Return our settings of rotary positions."""
        if self.share is None:
            return _of_whole_heads(settings)
        rope, _ = read_rope(settings, {"default": "none"})
        base, share = self.beside
        return {
            "rotary_base": rope.number("rope_theta", settings.number(base, BASE)),
            "rotary_share": rope.number("partial_rotary_factor", settings.number(share, self.share)),
        }


def read_rope(settings: Settings, types: Mapping[str, T]) -> tuple[Settings, T]:
    """Return the object of the rotary positions, and our value of its type.

    Args:
        settings: The settings of a config.json.
        types: Our value for each type that npformer supports.
    """
    rope = settings.part("rope_scaling" if settings.has("rope_scaling") else "rope_parameters")
    return rope, rope.choice("rope_type" if rope.has("rope_type") else "type", types, "default")


def _of_whole_heads(settings: Settings) -> dict[str, Any]:
    """Return our settings of rotary positions that rotate whole heads."""
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
    base = rope.number("rope_theta", settings.number("rope_theta", BASE))
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
    """Return the object, the way back."""
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
