"""Bug: one wrong line that is planted in a copy of the package."""

import re
from typing import NamedTuple

from trials.trial import ROOT, write_source

PLACE = re.compile(r"- (?:(\d+) of (\d+): )?(.+)", re.DOTALL)


class Bug(NamedTuple):
    """A change at one place in one file: `old` becomes `new`."""

    name: str
    file: str  # relative to npformer/
    old: str
    new: str
    nth: int = 1  # the occurrence of old that is meant, from 1
    of: int = 1  # the number of occurrences there must be

    def source(self, package=ROOT / "npformer"):
        """Return the text of the file."""
        return (package / self.file).read_text(encoding="utf-8")

    def position(self, source):
        """Return the position of the old text in the source, or raise NoLongerApplies."""
        found = source.count(self.old)
        if found != self.of:
            raise NoLongerApplies(
                f"planted bug {self.name!r} no longer applies: {self.file} holds its old text {found} times "
                f"and not {self.of}: bring it up to date in tests/planted_bugs/"
            )
        start = source.index(self.old)
        for _ in range(self.nth - 1):
            start = source.index(self.old, start + len(self.old))
        return start

    def changed(self, source):
        """Return the source with the bug, or raise NoLongerApplies."""
        start = self.position(source)
        return source[:start] + self.new + source[start + len(self.old) :]

    @property
    def declaration(self):
        """The change as text: the record tries the bug again when it differs."""
        return repr(self[1:])

    def plant(self, package):
        """Write the bug into a copy of the package, or raise NoLongerApplies."""
        write_source(package, self.file, self.changed(self.source(package)))


def bugs_in(text):
    r"""Return the bugs that a text declares.

    Below the name of a file, a line "- right text" is followed by its bugs: "  name of the bug | wrong text".
    A wrong text that does not fit on the line stands on the next, behind "    | ". An end of line is written
    \n, and "# ..." is a comment. Of a long text, a bug may give only the part that differs: "right → wrong".
    A right text that the file has several times says which of them is meant: "- 2 of 3: right text".
    """
    bugs, file = [], ""
    for raw in re.sub(r"\n +\| ", " | ", text).splitlines():
        line = raw.replace(r"\n", "\n")
        if line.startswith("- "):
            nth, of, old = PLACE.fullmatch(line).groups(default="1")
        elif line.startswith("  "):
            name, bar, new = line[2:].partition(" |")
            assert bar, f"the planted bug {name!r} has no wrong text"
            part, arrow, other = new.removeprefix(" ").partition(" →")
            if arrow:
                assert old.count(part) == 1, f"{name}: {old!r} must hold {part!r} once"
                part = old.replace(part, other.removeprefix(" "))
            bugs.append(Bug(name, file, old, part, int(nth), int(of)))
        elif not line.startswith("#"):
            file = line
    return bugs


class NoLongerApplies(Exception):
    """The error if the file does not contain the old text as often as the list of bugs says."""
