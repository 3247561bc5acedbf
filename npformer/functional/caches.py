"""The display of caches: a repr of one line, and nested tables in a notebook."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, TypeVar

from npformer.backend import is_array

T = TypeVar("T", bound=type)


def cache_class(cls: T) -> T:
    """Decorate a cache class: give it a short `repr`, and an HTML representation for notebooks.

    `repr(cache)` shows each member: an array by its dtype and shape, an inner cache by its class.
    """
    cls.__repr__ = _short  # type: ignore[assignment]
    cls._repr_html_ = _html  # type: ignore[attr-defined]
    return cls


def members(thing: Any) -> list[tuple[str, Any]]:
    """Return pairs (name, member) of a named tuple, a dataclass or a sequence, and [] for other objects."""
    if hasattr(thing, "_fields"):
        return list(zip(thing._fields, thing, strict=True))
    if is_dataclass(thing) and not isinstance(thing, type):
        return [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    if isinstance(thing, (tuple, list)) and any(is_array(t) or members(t) for t in thing):
        return [(str(index), item) for index, item in enumerate(thing)]
    return []


def _short(cache: Any) -> str:
    return f"{type(cache).__name__}({', '.join(f'{name}={_brief(m)}' for name, m in members(cache))})"


def _brief(thing: Any) -> str:
    """Return a short text for a member."""
    if is_array(thing):
        return f"{thing.dtype}{list(thing.shape)}"
    if type(thing) in (tuple, list) and members(thing):
        return f"[{_brief(thing[0])}, ...]" if len(thing) > 1 else f"[{_brief(thing[0])}]"
    return f"{type(thing).__name__}(...)" if members(thing) else repr(thing)


def _html(cache: Any) -> str:
    return f"<details open><summary><b>{escape(type(cache).__name__)}</b></summary>{_table(cache)}</details>"


def _table(thing: Any) -> str:
    rows = []
    for name, member in members(thing):
        text = escape(_brief(member))
        if members(member) and not is_array(member):
            text = f"<details><summary>{text}</summary>{_table(member)}</details>"
        rows.append(f"<tr><th style='text-align:left'>{escape(name)}</th><td>{text}</td></tr>")
    return f"<table>{''.join(rows)}</table>"
