"""Row and Report: what a gradient check found."""

import math
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Row:
    """One tensor, or one property, checked.

    error is relative: |numeric - analytic| over the length of the tensor's gradient (see check.py).
    """

    name: str  # of what was checked
    tensor: str  # or the property
    error: float
    method: str
    tolerance: float
    entry: tuple[int, ...] | None = None  # the first wrong entry
    diagnosis: str = ""

    @property
    def ok(self):
        """Whether the error is within the tolerance; a NaN is not."""
        return self.error <= self.tolerance

    def as_json(self):
        """A dict of plain values."""
        error = self.error if math.isfinite(self.error) else None
        entry = None if self.entry is None else list(self.entry)
        return asdict(self) | {"ok": self.ok, "error": error, "entry": entry}


@dataclass
class Report:
    """All rows of one check. str(report) is a table of them."""

    name: str
    rows: list[Row] = field(default_factory=list)

    @property
    def ok(self):
        """Whether every row is."""
        return all(row.ok for row in self.rows)

    @property
    def failures(self):
        """The rows that are not ok."""
        return [row for row in self.rows if not row.ok]

    @property
    def worst(self):
        """The row with the largest error: a failure before any other, a tensor's before a property's."""

        def badness(row):
            error = math.inf if math.isnan(row.error) else row.error
            return not row.ok, row.entry is not None, bool(row.diagnosis), error

        return max(self.rows, key=badness)

    def as_json(self):
        """A list of dicts, one a row."""
        return [row.as_json() for row in self.rows]

    def __str__(self):
        width = max(len(row.tensor) for row in self.rows)
        lines = [f"{self.name}: {'all gradients right' if self.ok else 'WRONG'}"]
        for row in self.rows:
            mark = "ok   " if row.ok else "WRONG"
            lines.append(f"  {mark} {row.tensor:{width}}  {row.error:8.1e}  {row.method}")
            if row.diagnosis:
                where = f"first wrong entry {list(row.entry)}: " if row.entry is not None else ""
                lines.append(f"        {where}{row.diagnosis}")
        return "\n".join(lines)
