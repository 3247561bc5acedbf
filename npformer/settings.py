"""What every configuration asks of its settings, and says where it does not get it."""

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from npformer.errors import UserError


def is_number(value: Any) -> bool:
    """Whether it is a real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def require_count(name: str, value: Any) -> None:
    """Errors: UserError for anything but a whole number of 1 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UserError(f"{name} is {value!r}: it must be a whole number, 1 or more")


def require_share(name: str, value: Any) -> None:
    """Errors: UserError for anything but a number from 0 up to but not 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise UserError(f"{name} is {value!r}: it is a share, from 0 up to but not 1")


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Errors: UserError for anything that is not one of the choices."""
    if value not in choices:
        raise UserError(f"{name} is {value!r}: choose one of {', '.join(choices)}")


def require_known(config: Any, names: Iterable[str]) -> None:
    """Errors: UserError for a name that is no setting of this configuration."""
    known = {field.name for field in dataclasses.fields(config)}
    for name in names:
        if name not in known:
            kind = type(config).__name__
            raise UserError(f"a {kind} has no setting {name!r}: it has {', '.join(sorted(known))}")


def choose_preset(name: str, presets: Sequence[str], kind: str = "preset") -> str:
    """The name itself, where there is such a preset. Errors: UserError with the nearest one."""
    if name not in presets:
        near = difflib.get_close_matches(name, presets, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(presets)}"
        raise UserError(f"unknown {kind} {name!r}: {hint}")
    return name
