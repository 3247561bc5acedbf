"""Checks of settings, used by every configuration."""

import dataclasses
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from npformer.errors import UserError, did_you_mean


def is_number(value: Any) -> bool:
    """Return whether a value is a real number. True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def require_count(name: str, value: Any) -> None:
    """Raise UserError unless the value is a whole number of 1 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UserError(f"{name} is {value!r}: it must be a whole number, 1 or more")


def require_index(name: str, value: Any) -> None:
    """Raise UserError unless the value is a whole number of 0 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise UserError(f"{name} is {value!r}: it must be a whole number, 0 or more")


def require_flags(config: Any) -> None:
    """Raise UserError unless each setting of a configuration, a dataclass, that is declared bool is one."""
    for field in dataclasses.fields(config):
        if field.type in ("bool", bool) and not isinstance(getattr(config, field.name), bool):
            raise UserError(f"{field.name} is {getattr(config, field.name)!r}: it must be True or False")


def require_share(name: str, value: Any) -> None:
    """Raise UserError unless 0 <= value < 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise UserError(f"{name} is {value!r}: it is a share, from 0 up to but not 1")


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise UserError unless the value is one of the choices.

    Args:
        name: The name of the setting, for the message.
        value: Its value.
        choices: The values that are allowed.
    """
    if value not in choices:
        raise UserError(f"{name} is {value!r}: choose one of {', '.join(choices)}")


def require_known(config: Any, names: Iterable[str]) -> None:
    """Raise UserError unless all names are settings of this configuration, a dataclass."""
    known = {field.name for field in dataclasses.fields(config)}
    for name in names:
        if name not in known:
            kind = type(config).__name__
            raise UserError(f"a {kind} has no setting {name!r}: it has {', '.join(sorted(known))}")


def require_name(name: str, names: Iterable[str], kind: str) -> str:
    """Return the name, and raise UserError with the most similar one unless it is one of the names.

    Args:
        name: The name that a user gave.
        names: The names that exist.
        kind: The noun for the message, such as "translator".
    """
    known = list(names)
    if name not in known:
        raise UserError(f"unknown {kind} {name!r}: {did_you_mean(name, known)}")
    return name
