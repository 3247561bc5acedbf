"""ModelSettings: what the configurations of all models share."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

from npformer.errors import Registry, UserError
from npformer.validation import (
    is_number,
    require_choice,
    require_count,
    require_flags,
    require_index,
    require_known,
    require_share,
    use_plain_numbers,
)


class ModelSettings:
    """The base class of the configurations of models, which are frozen dataclasses.

    Attributes:
        reads: The noun for what a model trains on: "sentence pairs", "text" or "sentences".
        later: The settings that older files lack, each with the value that says what these models compute.
        named: The named configurations, each as its settings that differ from the defaults.
    """

    reads: ClassVar[str] = "sentence pairs"
    later: ClassVar[Mapping[str, Any]] = {}
    named: ClassVar[Registry[dict[str, Any]]]

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Return the configuration with this name, with some settings changed.

        Raises:
            UserError: If the name or a setting is unknown, or if the settings are impossible.
        """
        return cls().replace(**(cls.named.find(name) | changes))

    @classmethod
    def architecture(cls, name: str, **changes: Any) -> Self:
        """Return the configuration with this name, as `preset` does."""
        return cls.preset(name, **changes)

    def replace(self, **changes: Any) -> Self:
        """Return the configuration with some settings changed. Unknown names raise a UserError."""
        require_known(self, changes)
        settings: Any = self
        changed: Self = dataclasses.replace(settings, **changes)
        return changed

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict of JSON values."""
        settings: Any = self
        return dataclasses.asdict(settings)

    def require(
        self,
        *,
        choices: Mapping[str, Sequence[str]] = MappingProxyType({}),
        counts: Sequence[str] = (),
        indices: Sequence[str] = (),
        shares: Sequence[str] = (),
        positive: Sequence[str] = (),
    ) -> None:
        """Check each setting by itself: those that are named, and those that are declared bool.

        NumPy's numbers become Python's. A setting whose default is None may be None.

        Args:
            choices: The values that a setting may have, by its name.
            counts: The settings that are whole numbers of 1 or more.
            indices: Those that are whole numbers of 0 or more.
            shares: Those that are numbers from 0 to 1, without 1.
            positive: Those that are finite numbers above 0.

        Raises:
            UserError: If a setting has another value.
        """
        use_plain_numbers(self)
        for name, values in choices.items():
            require_choice(name, getattr(self, name), values)
        for names, check in ((counts, require_count), (indices, require_index), (shares, require_share)):
            for name in names:
                value = getattr(self, name)
                if value is not None or getattr(type(self), name) is not None:
                    check(name, value)
        require_flags(self)
        for name in positive:
            if not (is_number(getattr(self, name)) and 0 < getattr(self, name) < math.inf):
                raise UserError(f"{name} is {getattr(self, name)!r}: it must be a number above 0")


def registry(kind: str, settings: Mapping[str, dict[str, Any]]) -> Registry[dict[str, Any]]:
    """Return the registry of named settings, whose error messages call them by a noun."""
    named: Registry[dict[str, Any]] = Registry(kind)
    for name, each in settings.items():
        named.register(name, each)
    return named
