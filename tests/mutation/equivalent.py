"""Mutants that change nothing that anyone could notice, as equivalent.txt declares them, with the reason."""

from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_suffix(".txt")


class Equivalent(NamedTuple):
    """A declaration that a mutant computes the same, for every input."""

    file: str
    function: str
    before: str
    after: str
    reason: str

    def matches(self, mutant):
        """Return True if the mutant is the declared one."""
        return self[:4] == (mutant.file, mutant.function, mutant.before, mutant.after)


def read(paragraph):
    """Return the declaration of a paragraph of the file."""
    place, before, after, reason = paragraph.strip().splitlines()
    assert (before[:2], after[:2], reason[:2]) == ("- ", "+ ", "  "), paragraph
    return Equivalent(*place.split(": "), before[2:], after[2:], reason[2:])


_, *PARAGRAPHS = FILE.read_text(encoding="utf-8").split("\n\n")  # the first one says what the others are
EQUIVALENT = tuple(map(read, PARAGRAPHS))


def is_equivalent(mutant):
    """Return True if the mutant is declared to be equivalent."""
    return any(declared.matches(mutant) for declared in EQUIVALENT)
