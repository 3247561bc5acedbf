"""The report of a gradient check in the answer of a child process."""

from typing import Any

from npformer.checking import CheckRow, Report
from npformer.learn.tasks.answer import DamagedAnswer


def plain_rows(report: Report) -> list[Any]:
    """Return the rows of a report as lists, without the name of the checked object."""
    return [
        [row.tensor, row.error, row.method, row.tolerance, row.entry, row.diagnosis] for row in report.rows
    ]


def report_from(name: str, rows: Any) -> Report:
    """Return the report of these rows.

    Args:
        name: The name of the checked object.
        rows: The rows, from `plain_rows`.

    Raises:
        DamagedAnswer: If these are not rows.
    """
    report = Report(name)
    for row in rows if isinstance(rows, list) else [None]:
        match row:
            case [str(), int() | float(), str(), int() | float(), tuple() | None, str()]:
                report.rows.append(CheckRow(name, *row))
            case _:
                raise DamagedAnswer("no row of a report")
    if not report.rows:
        raise DamagedAnswer("no rows")
    return report
