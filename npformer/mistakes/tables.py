"""Tables of mistakes: the form that the mistakes of one exercise and those of many share."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import dedent

NUMBER = "NUMBER"


@dataclass(frozen=True)
class Mistake:
    """A mistake that learners make, as a change of a solution.

    Args:
        says: A sentence that names the mistake with the names of the stub. It does not show the correct line.
        changes: Pairs of a text in the source of the solution, and the text in its place.
        is_shared: True if many solutions share the mistake.
    """

    says: str
    changes: tuple[tuple[str, str], ...]
    is_shared: bool = False

    def with_numbers(self, numbers: Iterable[float]) -> "Iterator[Mistake]":
        """Yield the mistake with each of some numbers instead of NUMBER, or as it is without one."""
        if all(NUMBER not in new for _, new in self.changes):
            yield self
            return
        for number in numbers:
            text = f"({number})" if number < 0 else str(number)
            changes = tuple((old, new.replace(NUMBER, text)) for old, new in self.changes)
            says = self.says.replace(NUMBER, f"{number:.6g}".replace("e+0", "e").replace("e-0", "e-"))
            yield replace(self, says=says, changes=changes)


def rows_of(table: str) -> Iterator[Mistake]:
    r"""Yield the mistakes of a table.

    Args:
        table: A text with rows of the form

            correct code => wrong code ## the sentence

            In the wrong code and the sentence, NUMBER stands for a number of the learner's code.
            Several changes are separated by " && ". A change that begins with "=>" replaces the same code
            as that of the row above. In the code, \n ends a line. An indented line continues the row above.
            Other lines are comments.
    """
    above = ""
    for row in re.sub(r"\n +", " ", dedent(table)).splitlines():
        changes, is_row, says = row.partition("## ")
        if not is_row:
            continue
        pairs = []
        for change in changes.replace(r"\n", "\n").split(" && "):
            old, _, new = change.partition("=> ")
            pairs.append((old.strip(" ") or above, new.strip(" ")))
        above = pairs[0][0]
        yield Mistake(says, tuple(pairs))
