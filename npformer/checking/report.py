"""CheckRow and Report: the result of a gradient check."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

UNDECIDED = (
    "not decided: forward rounds its output too much for differences of this size, so give other inputs or "
    "check the part that rounds alone"
)


@dataclass(frozen=True)
class CheckRow:
    """The check of one tensor, or of one property.

    error is relative: |numeric - analytic| divided by the norm of the gradient (see check.py).
    """

    name: str  # the name of the checked object
    tensor: str  # the name of the tensor or of the property
    error: float
    method: str
    tolerance: float
    entry: tuple[int, ...] | None = None  # the first wrong entry
    diagnosis: str = ""
    undecided: bool = False  # rounding errors of forward could explain the error

    @property
    def ok(self) -> bool:
        """True if the error is within the tolerance. A NaN is not."""
        return self.error <= self.tolerance

    def as_json(self) -> dict[str, Any]:
        """Return the row as a dict of JSON values."""
        error = self.error if math.isfinite(self.error) else None
        entry = None if self.entry is None else list(self.entry)
        return asdict(self) | {"ok": self.ok, "error": error, "entry": entry}


@dataclass
class Report:
    """The rows of one gradient check. str(report) is a table of the rows."""

    name: str
    rows: list[CheckRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the check could not see, and how it was made

    @property
    def ok(self) -> bool:
        """True if every row is ok."""
        return all(row.ok for row in self.rows)

    @property
    def failures(self) -> list[CheckRow]:
        """The rows that are not ok, because of an error or because the check cannot decide."""
        return [row for row in self.rows if not row.ok]

    @property
    def worst(self) -> CheckRow:
        """The row with the largest error. Failures come before other rows, tensors before properties."""

        def badness(row: CheckRow) -> tuple[bool, bool, bool, float]:
            error = math.inf if math.isnan(row.error) else row.error
            return not row.ok, row.entry is not None, bool(row.diagnosis), error

        return max(self.rows, key=badness)

    def as_json(self) -> list[dict[str, Any]]:
        """Return a list with one dict for each row."""
        return [row.as_json() for row in self.rows]

    def __str__(self) -> str:
        width = max(len(row.tensor) for row in self.rows)
        verdict = "not decided" if all(row.undecided for row in self.failures) else "INCORRECT"
        lines = [f"{self.name}: {'all gradients correct' if self.ok else verdict}"]
        for row in self.rows:
            mark = "ok   " if row.ok else "?    " if row.undecided else "FAIL "
            lines.append(f"  {mark} {row.tensor:{width}}  {row.error:8.1e}  {row.method}")
            if row.diagnosis:
                where = f"first wrong entry {list(row.entry)}: " if row.entry is not None else ""
                lines.append(f"        {where}{row.diagnosis}")
        lines += [f"  note: {text}" for text in self.notes]
        return "\n".join(lines)
