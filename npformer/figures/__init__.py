"""Every figure of the documents, drawn afresh from real tensors.

draw("F14") returns a Drawing: a matplotlib figure with its caption. Each draws from a Studio, which trains a
small model when one is first needed, and takes other inputs by keyword.
"""

import difflib
import importlib
import pkgutil

from npformer.errors import UserError
from npformer.figures.entry import DATA, REGISTER, SOURCES, Drawing, Entry
from npformer.figures.studio import Studio

__all__ = ["DATA", "REGISTER", "SOURCES", "Drawing", "Entry", "Studio", "all_entries", "draw"]


def all_entries() -> list[Entry]:
    """Every figure of the inventory, in its order. The files of this folder enter theirs when imported."""
    for part in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{part.name}")
    return [REGISTER[id] for id in sorted(REGISTER)]


def draw(id: str, studio: Studio | None = None, **changes) -> Drawing:
    """Draw one figure; changes are the keywords of the function that draws it.

    Errors: UserError for an unknown id, with the nearest.
    """
    entries = {entry.id: entry for entry in all_entries()}
    if id not in entries:
        near = difflib.get_close_matches(id, entries, n=1, cutoff=0)
        raise UserError(f"there is no figure {id!r}: did you mean {near[0]}?")
    return entries[id].draw(studio or Studio(), **changes)
