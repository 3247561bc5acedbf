"""All figures of the source documents, and figures of the course, drawn from real tensors.

draw("F14") returns a Drawing: a matplotlib figure with its caption. Keyword arguments change its inputs.
Figures of trained models draw from a Studio, which trains small models when they are first needed.

The names of the files say which figures they draw: f10_to_f17_masked_attention.py draws F14.
"""

import importlib
import pkgutil
import re
from typing import Any

from npformer.learn.figures.registry import DATA, FIGURES, SOURCES, Drawing, Entry
from npformer.learn.figures.studio import Studio

__all__ = ["DATA", "FIGURES", "SOURCES", "Drawing", "Entry", "Studio", "all_entries", "draw", "find_entry"]


def all_entries() -> list[Entry]:
    """Import all modules of this package, which register their figures, and return the figures by id."""
    for part in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{part.name}")
    return sorted(FIGURES, key=lambda entry: entry.id)


def find_entry(id: str) -> Entry:
    """Return the figure with this id, in capitals or not, and with or without the 0 of F01.

    Raises:
        UserError: If there is no such figure. The message suggests the most similar id.
    """
    all_entries()
    full = re.sub(r"^F(\d)$", r"F0\1", id.upper())
    return FIGURES.find(full if full in FIGURES else id)


def draw(id: str, studio: Studio | None = None, **changes: Any) -> Drawing:
    """Draw one figure and return it with its caption.

    Args:
        id: The id of the figure, such as "F14".
        studio: The source of trained models; by default a new one, which trains them when needed.
        changes: Settings of the figure, which `find_entry(id).settings` lists with their defaults.

    Raises:
        UserError: If there is no such figure. The message suggests the most similar id.
    """
    return find_entry(id).draw(studio, **changes)
