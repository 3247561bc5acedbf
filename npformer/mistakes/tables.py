"""Tables of mistakes: the form that the mistakes of one exercise and those of many share."""

import re
from collections.abc import Iterator
from textwrap import dedent


def rows_of(table: str) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    r"""Yield the sentences of a table, each with its changes.

    Args:
        table: A text with rows of the form

            correct code => wrong code ## the sentence

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
        yield says, tuple(pairs)
