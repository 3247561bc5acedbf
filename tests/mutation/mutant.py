"""Mutant: one small change of an expression or a statement, and the mutants of the package."""

import ast
import functools
import hashlib
from collections import Counter
from typing import NamedTuple

from trials.circle import FOLDERS
from trials.trial import ROOT, write_source

from mutation.operators import changes

# Files of imports alone, and the file that prints the tree of a module for people
LEFT_OUT = ("__init__.py", "show.py")


class Mutant(NamedTuple):
    """A change of one file, at one place."""

    file: str  # relative to npformer/
    function: str  # the function or method, without those nested in it
    operator: str  # the kind of change, see operators.py
    before: str  # the statement, or the condition of a compound statement, on one line
    after: str
    nth: int  # 1 for the first mutant of the function with these two texts, 2 for the second
    start: int  # the place of the old text, in bytes
    end: int
    new: str  # its replacement

    @property
    def name(self):
        """The change as one line. It identifies the mutant as long as its function does not change."""
        nth = f"  ({self.nth})" if self.nth > 1 else ""
        return f"{self.file}: {self.function}: {self.before}  ->  {self.after}{nth}"

    @property
    def declaration(self):
        """The same line: a record tries the mutant again when it differs."""
        return self.name

    def changed(self, source):
        """Return the source with the change."""
        text = source.encode()
        return (text[: self.start] + self.new.encode() + text[self.end :]).decode()

    def plant(self, package):
        """Write the mutant into a copy of the package."""
        write_source(package, self.file, self.changed(_source(self.file)))


@functools.cache
def _source(file):
    return (ROOT / "npformer" / file).read_text(encoding="utf-8")


@functools.cache
def all_mutants(folders=FOLDERS):
    """Return all mutants of some folders of the package."""
    package = ROOT / "npformer"
    files = [path for folder in folders for path in sorted((package / folder).rglob("*.py"))]
    names = [path.relative_to(package).as_posix() for path in files if path.name not in LEFT_OUT]
    return tuple(mutant for name in names for mutant in mutants_of(name, _source(name)))


def mutants_of(file, source):
    """Return the mutants of one source file."""
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node):
        first = starts[node.lineno - 1] + node.col_offset
        return first, starts[node.end_lineno - 1] + node.end_col_offset

    found, seen = [], Counter()
    for function, around, node, operator, new in changes(ast.parse(source)):
        (start, end), (left, right) = span(node), span(around)
        before, after = (
            " ".join(part.decode().split())
            for part in (text[left:right], text[left:start] + new.encode() + text[end:right])
        )
        seen[function, before, after] += 1
        nth = seen[function, before, after]
        found.append(Mutant(file, function, operator, before, after, nth, start, end, new))
    return found


def sample(mutants, seed, count):
    """Return `count` mutants, drawn at random.

    The draw takes the smallest hashes of the seed and the names, so that a change of one file leaves the
    mutants of all others in the sample, but for a few.
    """

    def key(mutant):
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).digest()

    return sorted(mutants, key=key)[:count]
