"""Tables of plain text, whose columns are as wide as their longest text on a terminal, and bars in them."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

BAR = 20  # characters of the longest bar


def columns_of_text(head: Sequence[str], lines: Iterable[Sequence[str]], *, right: bool = False) -> str:
    """Return lines of several texts as a table.

    Args:
        head: The names of the columns.
        lines: The texts of each line, one for each column.
        right: Align all columns but the first to the right, as numbers are.
    """
    every = [list(head), *(list(line) for line in lines)]
    widths = [max(map(cell_len, column)) for column in zip(*every, strict=True)]
    return "\n".join(
        "  ".join(
            " " * (width - cell_len(text)) + text
            if right and index
            else text + " " * (width - cell_len(text))
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in every
    )


def bar(value: float, largest: float) -> str:
    """Return a bar to the right of a line, or to the left of it for a number below 0.

    Args:
        value: The number.
        largest: The absolute value of the number with the longest bar.
    """
    length = round(BAR * abs(value) / largest) if largest > 0 else 0
    left, right = ("", "█" * length) if value > 0 else ("█" * length, "")
    return f"{left:>{BAR}}│{right}"
