"""The display of caches: as one line of text, and as nested tables in a notebook."""

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
    decorated: Any = cls
    decorated.__repr__ = _short
    decorated._repr_html_ = _html
    return cls


def members(cache: Any) -> list[tuple[str, Any]]:
    """Return pairs (name, member) of a named tuple, a dataclass, a dict or a sequence, and [] for others.

    A sequence that contains no array and no cache, such as a shape, has no members either.
    """
    if hasattr(cache, "_fields") and not isinstance(cache, type):
        return list(zip(cache._fields, cache, strict=True))
    if is_dataclass(cache) and not isinstance(cache, type):
        return [(field.name, getattr(cache, field.name)) for field in fields(cache)]
    if isinstance(cache, dict):
        return [(str(name), member) for name, member in cache.items()]
    if isinstance(cache, (tuple, list)) and any(is_array(item) or members(item) for item in cache):
        return [(str(index), item) for index, item in enumerate(cache)]
    return []


def _short(cache: Any) -> str:
    """Return the repr of a cache."""
    return f"{type(cache).__name__}({', '.join(f'{name}={_brief(m)}' for name, m in members(cache))})"


def _brief(member: Any) -> str:
    """Return a short text for a member."""
    if is_array(member):
        return f"{member.dtype}{list(member.shape)}"
    if type(member) in (tuple, list) and members(member):
        return f"[{_brief(member[0])}, ...]" if len(member) > 1 else f"[{_brief(member[0])}]"
    return f"{type(member).__name__}(...)" if members(member) else repr(member)


def _html(cache: Any) -> str:
    """Return a cache as an HTML element that can be folded."""
    return f"<details open><summary><b>{escape(type(cache).__name__)}</b></summary>{_table(cache)}</details>"


def _table(cache: Any) -> str:
    """Return the members of a cache as an HTML table."""
    rows = []
    for name, member in members(cache):
        text = escape(_brief(member))
        if members(member) and not is_array(member):
            text = f"<details><summary>{text}</summary>{_table(member)}</details>"
        rows.append(f"<tr><th style='text-align:left'>{escape(name)}</th><td>{text}</td></tr>")
    return f"<table>{''.join(rows)}</table>"
