"""Detect that a user's file has replaced functions of npformer or NumPy, on which a verdict rests."""

import sys
from collections.abc import Iterator
from typing import Any

from npformer.errors import UserError

PACKAGES = ("npformer", "numpy")


class Untouched:
    """The functions and classes of the loaded modules of npformer and NumPy, as they are now.

    This notices a file that assigns to them, by mistake or to get a better verdict. It does not protect
    against a file that hides what it does.
    """

    def __init__(self) -> None:
        self._before = dict(_code())

    def require(self, file: str) -> None:
        """Raise UserError if a function or a class is another one now.

        Args:
            file: The user's file, for the message.
        """
        now = dict(_code())
        for name, before in self._before.items():
            if not _is_same(before, now.get(name)):
                raise UserError(
                    f"{file} replaces {name}, so the check would prove nothing: leave npformer and NumPy as "
                    "they are"
                )


def _code() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield pairs (dotted name, (object, its code)) of what the modules and their classes define."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in PACKAGES:
            continue
        for name, item in list(vars(module).items()):
            if callable(item):
                yield f"{module_name}.{name}", _with_code(item)
            if isinstance(item, type) and item.__module__ == module_name:
                for member, value in list(vars(item).items()):
                    if callable(value) or isinstance(value, (property, classmethod)):
                        yield f"{module_name}.{name}.{member}", _with_code(value)


def _with_code(item: Any) -> tuple[Any, Any]:
    return item, getattr(item, "__code__", None)


def _is_same(before: tuple[Any, Any], now: tuple[Any, Any] | None) -> bool:
    return now is not None and before[0] is now[0] and before[1] is now[1]
