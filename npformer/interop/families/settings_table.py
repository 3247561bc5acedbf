"""SettingTable: the settings of a config.json beside ours, a table that serves reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from npformer.errors import UserError
from npformer.interop.settings_file import Settings

# the default of a setting whose absence is None in our configuration, which stands for a usual value there
USUAL: Any = object()
# our settings whose value in effect is told by a property, since None or a name stands for it
EFFECTIVE = {
    "n_kv_heads": "key_heads",
    "head_dim": "d_head",
    "d_head": "head_key",
    "d_ff": "hidden_width",
    "d_expert": "expert_width",
    "qkv_bias": "has_qkv_bias",
    "rotary_scaling": "scaling",
    "decoder_layers": "n_decoder_layers",
}


@dataclass(frozen=True)
class SettingRow:
    """One of our settings, and the setting of a config.json that holds its value.

    Attributes:
        kind: The method of Settings that reads it, or our value for each text that the setting may have. With
            None, the setting is written and not read, because it acts in training alone.
        ours: The name of our setting. Several names are settings that have one value in a file.
        theirs: The name of theirs. Several names are settings of a file that must have one value here; those
            that the file lacks do not count.
        default: The value if the file lacks the setting, or the function that finds it in the other settings.
            None: the file must have it. USUAL: then ours is None.
    """

    kind: Callable[[Settings, str, Any], Any] | Mapping[str, Any] | None
    ours: str | tuple[str, ...]
    theirs: str | tuple[str, ...]
    default: Any = None

    def read(self, settings: Settings) -> dict[str, Any]:
        """Return our settings, by their names.

        Raises:
            UserError: If the value is missing or impossible, or if the file has two of them.
        """
        if self.kind is None:
            return {}
        names = _names(self.theirs)
        names = tuple(name for name in names if settings.has(name)) or names[:1]
        values = [self._value(settings, name) for name in names]
        for name, value in zip(names, values, strict=True):
            if value != values[0]:
                raise UserError(
                    f"{names[0]} is {values[0]} and {name} {value} in {settings.place}, and npformer "
                    "supports only equal numbers: use another model"
                )
        return dict.fromkeys(_names(self.ours), values[0])

    def written(self, config: Any) -> dict[str, Any]:
        """Return their settings, the way back from read.

        Raises:
            UserError: If the family has no text for our value.
        """
        name = _names(self.ours)[0]
        value = effective(config, name)
        if isinstance(self.kind, Mapping):
            # of several texts for one value of ours, the first one is written
            texts = {ours: theirs for theirs, ours in reversed(list(self.kind.items()))}
            if value not in texts:
                raise UserError(
                    f"{name} of the model is {value!r}, and the layout has only "
                    f"{', '.join(dict.fromkeys(self.kind.values()))}: choose another layout"
                )
            value = texts[value]
        value = list(value) if isinstance(value, tuple) else value  # as JSON has it
        return dict.fromkeys(_names(self.theirs), value)

    def _value(self, settings: Settings, name: str) -> Any:
        """Return our value of one of their settings."""
        assert self.kind is not None
        default = self.default
        if default is USUAL:
            if not settings.has(name):
                return None
            default = None
        if callable(default):
            default = default(settings)
        if isinstance(self.kind, Mapping):
            return settings.choice(name, self.kind, default)
        return self.kind(settings, name, default)


# the rows of a whole number of 1 or more, of True or False, of a whole number of 0 or more, and of a number
count, flag = partial(SettingRow, Settings.count), partial(SettingRow, Settings.flag)
index, number = partial(SettingRow, Settings.index), partial(SettingRow, Settings.number)


def or_null(kind: Callable[[Settings, str, Any], Any]) -> Callable[[Settings, str, Any], Any]:
    """Return the kind of a setting that may be null, which is not the same as if it were missing.

    Args:
        kind: The method of Settings that reads it otherwise.
    """

    def read(settings: Settings, name: str, default: Any) -> Any:
        if name not in settings.values:
            return default
        return kind(settings, name, None) if settings.has(name) else None

    return read


@dataclass(frozen=True)
class SettingTable:
    """The settings of a family.

    Attributes:
        config: The class of our configuration.
        rows: The rows of the table.
        only: The settings of a file that have one supported value, which is the default there.
        ours: Our settings for which the family has one value, if that is not our default.
        theirs: What else a config.json of the family says.
    """

    config: Callable[..., Any]
    rows: Iterable[SettingRow]
    only: Mapping[str, Any] = field(default_factory=dict)
    ours: Mapping[str, Any] = field(default_factory=dict)
    theirs: Mapping[str, Any] = field(default_factory=dict)

    def read(self, settings: Settings, **others: Any) -> Any:
        """Return our configuration.

        Args:
            settings: The settings of a config.json.
            others: Settings of ours that no row has, or that replace those of a row.

        Raises:
            UserError: If a setting is missing or impossible, or asks for what our model does not have.
        """
        for name, value in self.only.items():
            settings.require(name, value, default=value)
        read = {name: value for row in self.rows for name, value in row.read(settings).items()}
        return settings.configure(self.config, **{**read, **self.ours, **others})

    def written(self, config: Any, **others: Any) -> dict[str, Any]:
        """Return the content of a config.json, the way back from read.

        Args:
            config: Our configuration.
            others: Settings of theirs that no row has, or that replace those of a row.

        Raises:
            UserError: If the family has no text for a value of ours.
        """
        written = {name: value for row in self.rows for name, value in row.written(config).items()}
        return {**self.theirs, **written, **others}


def effective(config: Any, name: str) -> Any:
    """Return the value of one of our settings, with the usual value for None.

    Args:
        config: Our configuration.
        name: The name of the setting.
    """
    return getattr(config, EFFECTIVE.get(name, name), getattr(config, name))


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
