"""Tables that are written as text in the source, where a reader sees columns."""


def rows(table: str) -> list[list[str]]:
    """The cells of a table, one list a line: cells stand between bars, the space round them is dropped."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def items(cell: str) -> list[str]:
    """What a cell lists, between semicolons; nothing for an empty cell."""
    return [item.strip() for item in cell.split(";") if item.strip()]
