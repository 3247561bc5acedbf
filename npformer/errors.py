"""UserError, for mistakes that the user can correct, and registries that suggest the nearest name."""

import contextlib
import difflib
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class UserError(ValueError):
    """An error that the user can correct. Its message is one sentence: what is wrong, where, and what to do.

    The command line prints it without a traceback and exits with status 2.
    """


@contextlib.contextmanager
def in_context(place: str) -> Iterator[None]:
    """Begin the message of every UserError with the place, such as a file, where it arises."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a name or begins with it, or None if there is none."""
    names = {known_name.lower(): known_name for known_name in known}
    name = str(name)  # also a number where a name belongs
    similar = difflib.get_close_matches(name.lower(), names, n=1)
    if not similar and name:  # difflib does not find a long name from its first letters
        similar = [known_name for known_name in names if known_name.startswith(name.lower())]
    return names[similar[0]] if similar else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean X?" for the nearest known name, or "choose one of A, B, C".

    The result is the second half of an error message.
    """
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"choose one of {', '.join(names)}"


def unknown(kind: str, name: str, known: Iterable[str], listing: str | None = None) -> UserError:
    """Return the error for a name that is not known.

    Args:
        kind: The noun for the message, such as "preset" or "figure".
        name: The unknown name.
        known: All known names.
        listing: A command that lists all names. The message names it instead of the known names.
    """
    hint = did_you_mean(name, known)
    if listing and not hint.startswith("did"):
        hint = f"{listing} prints all names"
    return UserError(f"unknown {kind} {name!r}: {hint}")


class Registry(Generic[T]):
    """A table of objects of one kind by name. Each object is registered in the file that defines it.

    Args:
        kind: The noun for error messages, such as "preset" or "figure".
        listing: A command that lists all names, such as "npformer figures --list". The error message names it
            instead of the known names, if there are too many to print.
    """

    def __init__(self, kind: str, listing: str | None = None) -> None:
        self.kind = kind
        self.listing = listing
        self._things: dict[str, T] = {}

    def register(self, name: str, thing: T) -> T:
        """Add an object under a new name and return it."""
        assert name not in self._things, f"the {self.kind} {name!r} is registered twice"
        self._things[name] = thing
        return thing

    def find(self, name: str) -> T:
        """Return the object with this name.

        Raises:
            UserError: If there is no such name. The message suggests the most similar one.
        """
        if name in self._things:
            return self._things[name]
        raise unknown(self.kind, name, self._things, self.listing)

    def names(self) -> list[str]:
        """Return all names in the order of registration."""
        return list(self._things)

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[T]:
        return iter(self._things.values())

    def __len__(self) -> int:
        return len(self._things)


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun for a message: "1 line", "2 lines".

    Args:
        number: The number.
        noun: The noun in the singular.
        plural: The noun in the plural. By default, an s is added.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
