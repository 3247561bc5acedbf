"""Checks of settings, which every configuration uses, and of the types of the values in a file."""

import dataclasses
import reprlib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from npformer.errors import UserError, did_you_mean, quantity

LARGEST_COUNT = 2**63 - 1  # the largest whole number in an array

_TYPE_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    type(None): "null",
}


def is_number(value: Any) -> bool:
    """Return whether a value is a real number. True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def require_count(name: str, value: Any) -> None:
    """Raise UserError unless the value is a whole number of 1 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UserError(f"{name} is {short(value)}: it must be a whole number, 1 or more")
    if int(value) > LARGEST_COUNT:
        raise UserError(f"{name} is {short(value)}: it must be at most {LARGEST_COUNT:,}")


def require_counts(**values: Any) -> None:
    """Raise UserError unless each value is a whole number of 1 or more."""
    for name, value in values.items():
        require_count(name, value)


def require_index(name: str, value: Any, count: int | None = None) -> int:
    """Return an index as an int.

    Args:
        name: The name of the setting, for the message, such as "layer" or "--layer".
        value: Its value.
        count: The number of the things that are counted from 0, if there is a largest index.

    Raises:
        UserError: If the value is not a whole number of 0 or more, or not below the count.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    if count is None and not whole:
        raise UserError(f"{name} is {short(value)}: it must be a whole number, 0 or more")
    if count is not None and not (whole and value < count):
        thing = name.lstrip("-").rpartition("_")[2]  # a zero_id is an id
        things = quantity(count, thing, "queries" if thing == "query" else "")
        are = "is" if count == 1 else "are"
        raise UserError(f"{name} is {short(value)}: there {are} {things}, counted from 0")
    return int(value)


def use_plain_numbers(config: Any) -> None:
    """Replace NumPy's numbers in the settings of a configuration by Python's, which JSON can write.

    Args:
        config: A dataclass, perhaps a frozen one, whose settings may be tuples or lists of numbers.
    """
    for field in dataclasses.fields(config):
        object.__setattr__(config, field.name, _plain(getattr(config, field.name)))


def _plain(value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def require_flags(config: Any) -> None:
    """Raise UserError unless each setting of a configuration, a dataclass, that is declared bool is one."""
    for field in dataclasses.fields(config):
        if field.type in ("bool", bool) and not isinstance(getattr(config, field.name), bool):
            raise UserError(f"{field.name} is {getattr(config, field.name)!r}: it must be True or False")


def require_share(name: str, value: Any) -> None:
    """Raise UserError unless 0 <= value < 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise UserError(f"{name} is {value!r}: it must be at least 0 and below 1")


def require_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise UserError unless the value is one of the choices.

    Args:
        name: The name of the setting, for the message.
        value: Its value.
        choices: The values that are allowed.
    """
    if not isinstance(value, str | None) or value not in choices:
        raise UserError(f"{name} is {short(value)}: choose one of {', '.join(choices)}")


def require_known(config: Any, names: Iterable[str]) -> None:
    """Raise UserError unless all names are settings of this configuration, a dataclass or its class."""
    known = {field.name for field in dataclasses.fields(config)}
    for name in names:
        if name not in known:
            kind = (config if isinstance(config, type) else type(config)).__name__
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


def require_types(settings: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Raise UserError unless each setting has the type of its annotation.

    Args:
        settings: The values by name.
        hints: The annotations by name, as `typing.get_type_hints` returns them.
    """
    for name, value in settings.items():
        if name in hints and not has_type(value, hints[name]):
            raise UserError(f"{name} is {short(value)}: it must be {type_name(hints[name])}")


def require_file_settings(config: type, settings: Mapping[str, Any]) -> None:
    """Check the names and the types of settings that were read from a file.

    Args:
        config: The dataclass of the configuration.
        settings: The values by name.

    Raises:
        UserError: If a setting is unknown or missing, or has a wrong type.
    """
    known = {field.name for field in dataclasses.fields(config)}
    for name in settings:
        if name not in known:
            raise UserError(
                f"a {config.__name__} has no setting {short(name)}, perhaps one of a newer npformer: "
                "use the version that wrote the file"
            )
    for name in sorted(known - settings.keys()):  # a default might differ from the setting that was used
        raise UserError(f"the {config.__name__} has no setting {name!r}: use an undamaged file")
    require_types(settings, typing.get_type_hints(config))


def has_type(value: Any, hint: Any) -> bool:
    """Return whether a value, such as one that JSON gives, has the type of an annotation.

    A whole number is also a float, and a list is also a tuple. True and False are not numbers.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(has_type(value, each) for each in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            return False
        if origin is list or arguments[-1] is Ellipsis:
            return all(has_type(each, arguments[0]) for each in value)
        return len(value) == len(arguments) and all(map(has_type, value, arguments))
    if hint in (None, type(None)):
        return value is None
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return is_number(value)
    return isinstance(value, origin or hint)


def type_name(hint: Any) -> str:
    """Return the name of an annotation for a message, such as "a whole number or null"."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_name(each) for each in arguments))
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin in (list, tuple) and arguments:
        return f"a list of {type_name(arguments[0]).removeprefix('a ')}s"
    return _TYPE_NAMES.get(hint, _TYPE_NAMES.get(origin, "a text"))


def short(value: Any) -> str:
    """Return the repr of a value, cut to at most about 60 characters."""
    printer = reprlib.Repr()
    printer.maxstring = printer.maxother = printer.maxlong = 60
    return printer.repr(value)
