"""The settings of a model in config.json, read one by one, each with its type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from npformer.errors import UserError, in_context
from npformer.storage.json_files import read_json, require_object
from npformer.validation import LARGEST_COUNT, has_type, short, type_name

FILE = "config.json"
REMEDY = "use the file that belongs to the model"
# numbers in a table of positions, such as the angles of 262,144 positions for heads of 128
LARGEST_TABLE = 2**24

T = TypeVar("T")


class Settings:
    """The settings of a config.json. A setting that is null counts as missing.

    Args:
        values: The values by name.
        place: The noun for the file, with its folder, for messages.

    Raises:
        UserError: If a setting that is read is missing without a default, or has a wrong type.
    """

    def __init__(self, values: Mapping[str, Any], place: str = FILE) -> None:
        self.values, self.place = values, place

    def has(self, name: str) -> bool:
        """Return whether the file has a setting, and it is not null."""
        return self.values.get(name) is not None

    def count(self, name: str, default: int | None = None) -> int:
        """Return a whole number of 1 or more."""
        value: int = self._read(name, int, default)
        if not 1 <= value <= LARGEST_COUNT:
            raise UserError(f"{name} is {short(value)} in {self.place}: it must be 1 or more")
        return value

    def pair(self, name: str, default: int | None = None) -> tuple[int, int]:
        """Return two whole numbers of 1 or more, such as a height and a width. One number stands for both."""
        value = self.values.get(name)
        if not isinstance(value, list):
            return (self.count(name, default),) * 2
        if len(value) != 2 or any(type(each) is not int or each < 1 for each in value):
            raise UserError(f"{name} is {short(value)} in {self.place}: it must be a height and a width")
        return value[0], value[1]

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number."""
        value = self._read(name, float, default)
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond the range of a float
            number = math.inf
        if not math.isfinite(number):
            raise UserError(f"{name} is {short(value)} in {self.place}: it must be a finite number")
        return number

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return True or False."""
        value: bool = self._read(name, bool, default)
        return value

    def index(self, name: str, default: int | None = None) -> int:
        """Return a whole number of 0 or more, such as the id of a token."""
        value: int = self._read(name, int, default)
        if not 0 <= value <= LARGEST_COUNT:
            raise UserError(f"{name} is {short(value)} in {self.place}: it must be 0 or more")
        return value

    def choice(self, name: str, choices: Mapping[str, T], default: str | None = None) -> T:
        """Return our value for one of the texts that a setting may have.

        Args:
            name: The name of the setting.
            choices: Our value for each text that npformer supports.
            default: The text if the setting is missing.
        """
        value = self._read(name, str, default)
        if value not in choices:
            raise UserError(
                f"{name} is {short(value)} in {self.place}, and npformer supports "
                f"{', '.join(choices)}: use a model with one of these"
            )
        return choices[value]

    def part(self, name: str) -> Settings:
        """Return the settings of an object within the file, which is empty if it is missing."""
        return Settings(self._read(name, dict, {}), f"{name} of {self.place}")

    def require(self, name: str, value: Any, default: Any = None) -> None:
        """Refuse the file unless a setting has the only value that our models support.

        Args:
            name: The name of the setting.
            value: The value that is supported.
            default: The value if the setting is missing.
        """
        found = self.values.get(name)
        found = default if found is None else found
        if type(found) is not type(value) or found != value:
            raise UserError(
                f"{name} is {json_text(found)} in {self.place}, and npformer supports only "
                f"{json_text(value)}: use another model"
            )

    def require_table(self, name: str, n_rows: int, width: int) -> None:
        """Refuse a table of positions that is too large for memory: the files do not hold it.

        Args:
            name: The setting that gives the number of positions.
            n_rows: The number of positions.
            width: The numbers for each position.
        """
        if n_rows * width > LARGEST_TABLE:
            raise UserError(
                f"{name} is {short(n_rows)} in {self.place}, and npformer makes a table of at most "
                f"{LARGEST_TABLE // width:,} positions for this model: write a smaller number there"
            )

    def configure(self, config: Callable[..., T], **settings: Any) -> T:
        """Return our configuration with these settings. Its error messages begin with the file."""
        with in_context(self.place):
            return config(**settings)

    def _read(self, name: str, hint: Any, default: Any) -> Any:
        """Return the value of a setting, checked against an annotation."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise UserError(f"{self.place} has no setting {name!r}: {REMEDY}")
            return default
        if not has_type(value, hint):
            raise UserError(f"{name} is {short(value)} in {self.place}: it must be {type_name(hint)}")
        return value


def read_settings(folder: Path, file: str = FILE) -> Settings:
    """Read the config.json of a folder, or another file with settings.

    Args:
        folder: The folder.
        file: The name of the file.

    Raises:
        UserError: If it is missing, cannot be read, or is not a JSON object.
    """
    place = f"{file} in {folder}"
    content = read_json(folder / file, place, REMEDY)
    return Settings(require_object(content, place, REMEDY), place)


def json_text(value: Any) -> str:
    """Return a value as JSON writes it, cut to a short length."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return short(value)
