"""Bug: one wrong line that is planted in a copy of the package."""

from typing import NamedTuple

from trials.trial import ROOT, write_source


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


class Place(NamedTuple):
    """One of several places with the same text in a file."""

    text: str
    nth: int  # from 1
    of: int


def bugs_in(files):
    """Return the bugs that a dict declares as {file: {right text: {name: wrong text}}}.

    Of a long text, a bug may give only the part that differs, as "right part → wrong part". A text that a
    file has several times stands in a Place.
    """
    for file, places in files.items():
        for place, wrong in places.items():
            place = place if isinstance(place, Place) else Place(place, 1, 1)
            for name, new in wrong.items():
                part, arrow, other = new.partition(" → ")
                if arrow:
                    assert place.text.count(part) == 1, f"{name}: {place.text!r} must hold {part!r} once"
                    new = place.text.replace(part, other)
                yield Bug(name, file, place.text, new, place.nth, place.of)


class NoLongerApplies(Exception):
    """The error if the file does not contain the old text as often as the list of bugs says."""
