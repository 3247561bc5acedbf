"""SettingTable: the settings of a config.json beside ours, a table that serves reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from npformer.errors import UserError
from npformer.interop.settings_file import Settings, json_text

# the default of a setting that is None in our configuration if the file lacks it: our model has a usual value
USUAL: Any = object()
# our settings whose effect another property tells, since None or a name stands for it
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
        reader: The method of Settings that reads it, or our value for each text that the setting may have.
            None: it is written and never read.
        ours: The name of our setting. Several names are settings of ours that all get the value of theirs.
        theirs: The name of theirs. Several names are settings of a file whose values must be equal.
        default: The value if the file lacks the setting, or the function that finds it in the other settings.
            None: the file must have it. USUAL: then ours is None.
    """

    reader: Callable[[Settings, str, Any], Any] | Mapping[str, Any] | None
    ours: str | tuple[str, ...]
    theirs: str | tuple[str, ...]
    default: Any = None

    def read(self, settings: Settings) -> dict[str, Any]:
        """Return our settings, by their names.

        Raises:
            UserError: If the value is missing or impossible, or if the file has two of them.
        """
        if self.reader is None:
            return {}
        names = _names(self.theirs)
        values = [self._value(settings, name) for name in names]
        for name, value in zip(names, values, strict=True):
            if value != values[0]:
                raise UserError(
                    f"{names[0]} is {json_text(values[0])} and {name} is {json_text(value)} in "
                    f"{settings.place}, and npformer supports only equal values: use another model"
                )
        return dict.fromkeys(_names(self.ours), values[0])

    def written(self, config: Any) -> dict[str, Any]:
        """Return their settings, the way back from read.

        Raises:
            UserError: If the family has no text for our value.
        """
        name = _names(self.ours)[0]
        value = effective(config, name)
        if isinstance(self.reader, Mapping):
            # reversed, so that the first of several texts for one value of ours wins
            texts = {ours: theirs for theirs, ours in reversed(list(self.reader.items()))}
            if value not in texts:
                raise UserError(
                    f"{name} of the model is {value!r}, and the layout has only "
                    f"{', '.join(dict.fromkeys(self.reader.values()))}: choose another layout"
                )
            value = texts[value]
        value = list(value) if isinstance(value, tuple) else value  # as JSON has it
        return dict.fromkeys(_names(self.theirs), value)

    def _value(self, settings: Settings, name: str) -> Any:
        """Return our value of one of their settings."""
        assert self.reader is not None
        default = self.default
        if default is USUAL:
            if not settings.has(name):
                return None
            default = None
        if callable(default):
            default = default(settings)
        if isinstance(self.reader, Mapping):
            return settings.choice(name, self.reader, default)
        return self.reader(settings, name, default)


def _or_null(reader: Callable[[Settings, str, Any], Any]) -> Callable[[Settings, str, Any], Any]:
    """Return the reader of a setting that may be null, which is not the same as if it were missing.

    Args:
        reader: The method of Settings that reads it otherwise.
    """

    def read(settings: Settings, name: str, default: Any) -> Any:
        if name not in settings.values:
            return default
        return reader(settings, name, None) if settings.has(name) else None

    return read


# A family writes each row as kind(ours, theirs, default): count("d_model", "hidden_size", 768).
count = partial(SettingRow, Settings.count)  # a whole number of 1 or more
index = partial(SettingRow, Settings.index)  # a whole number of 0 or more
number = partial(SettingRow, Settings.number)
flag = partial(SettingRow, Settings.flag)  # True or False
pair = partial(SettingRow, Settings.pair)  # a height and a width
count_or_null = partial(SettingRow, _or_null(Settings.count))
number_or_null = partial(SettingRow, _or_null(Settings.number))


def choice(ours: str, theirs: str, texts: Mapping[str, Any], default: str) -> SettingRow:
    """Return the row of a setting that is one of several texts.

    Args:
        ours: The name of our setting.
        theirs: The name of theirs.
        texts: Our value for each text.
        default: The text if the file lacks the setting.
    """
    return SettingRow(texts, ours, theirs, default)


def written_only(ours: str, theirs: str | tuple[str, ...]) -> SettingRow:
    """Return the row of a setting that is written and never read, because it acts in training alone.

    Args:
        ours: The name of our setting.
        theirs: The name of theirs, or the names of several that get our value.
    """
    return SettingRow(None, ours, theirs)


@dataclass(frozen=True)
class SettingTable:
    """The settings of a family.

    Attributes:
        config: The class of our configuration.
        architecture: The class of transformers that reads the files. None: it depends on the head, or on the
            variant of the table.
        rows: The rows of the table.
        required: The settings of a file that have one supported value, which is the default there.
        fixed: Our settings for which the family has one value, if that is not our default.
        written_too: What else a config.json of the family says.
        defaults: The values of settings that a file may leave out, if they are not those of the rows.
    """

    config: Callable[..., Any]
    architecture: str | None
    rows: Sequence[SettingRow]
    required: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    written_too: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def variant(
        self, config: Callable[..., Any], architecture: str, *rows: SettingRow, **added: Mapping[str, Any]
    ) -> Self:
        """Return the table of a family that has nearly the same settings.

        Args:
            config: The class of our configuration.
            architecture: The class of transformers.
            rows: Rows that this table lacks, or that replace those that read the same settings of ours. A row
                that is never read replaces none: dropout has several names in some families.
            added: What is added to `required`, `fixed`, `written_too` or `defaults` of this table.
        """
        replaced = {row.ours for row in rows if row.reader is not None}
        rows = (*(row for row in self.rows if row.ours not in replaced), *rows)
        mappings: Any = {name: {**getattr(self, name), **entries} for name, entries in added.items()}
        return replace(self, config=config, architecture=architecture, rows=rows, **mappings)

    def read(self, settings: Settings, **others: Any) -> Any:
        """Return our configuration.

        Args:
            settings: The settings of a config.json.
            others: Settings of ours that no row has, or that replace those of a row.

        Raises:
            UserError: If a setting is missing or impossible, or asks for what our model does not have.
        """
        settings = Settings({**self.defaults, **settings.values}, settings.place)
        for name, value in self.required.items():
            settings.require(name, value, default=value)
        read = {name: value for row in self.rows for name, value in row.read(settings).items()}
        return settings.configure(self.config, **{**read, **self.fixed, **others})

    def written(self, config: Any, **others: Any) -> dict[str, Any]:
        """Return the content of a config.json, the way back from read.

        Args:
            config: Our configuration.
            others: Settings of theirs that no row has, or that replace those of a row.

        Raises:
            UserError: If the family has no text for a value of ours.
        """
        written = {name: value for row in self.rows for name, value in row.written(config).items()}
        architectures = {"architectures": [self.architecture]} if self.architecture else {}
        return {**architectures, **self.written_too, **written, **others}


def effective(config: Any, name: str) -> Any:
    """Return the value of one of our settings, with the usual value for None.

    Args:
        config: Our configuration.
        name: The name of the setting.
    """
    return getattr(config, EFFECTIVE.get(name, name), getattr(config, name))


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
