"""Where a result differs from the right one, as characters: one for each entry of a slice."""

import numpy as np

ROWS, COLUMNS = 12, 40
MARKS = "· right   + too large   - too small   0 is 0, should not be   x should be 0   ! not a number"


def picture_of(name: str, right, found, wrong) -> str:
    """A grid of marks of the matrix that holds the first wrong entry. Shapes: all three alike."""
    if right.ndim == 0 or right.size == 1:
        return ""
    where = first(wrong)[:-2] if right.ndim > 1 else ()
    marks = np.atleast_2d(_marks(right, found, wrong)[where])
    rows, columns = marks.shape
    lines = ["  " + " ".join(line[:COLUMNS]) + (" …" if columns > COLUMNS else "") for line in marks[:ROWS]]
    if rows > ROWS:
        lines.append(f"  … and {rows - ROWS} rows more")
    at = f"[{', '.join(map(str, where))}]" if where else ""
    axes = f"rows: axis {right.ndim - 2}, columns: axis {right.ndim - 1}" if right.ndim > 1 else "axis 0"
    others = int(wrong.reshape(-1, rows * columns).any(1).sum()) - 1 if right.ndim > 2 else 0
    more = f", and {others} more such matrices differ" if others else ""
    legend = "   ".join(part for part in MARKS.split("   ") if part[0] in set("".join(marks.reshape(-1))))
    return "\n".join([f"{name}{at} ({axes}){more}:", *lines, f"  {legend}"])


def slice_of(right, found, wrong) -> list | None:
    """found - right of the same matrix, as lists; None where it is no matrix, or not finite."""
    if right.ndim == 0 or right.size == 1 or not np.isfinite(found).all():
        return None
    where = first(wrong)[:-2] if right.ndim > 1 else ()
    return np.atleast_2d((found - right)[where]).tolist()


def first(wrong) -> tuple[int, ...]:
    """The index of the first entry that is wrong."""
    return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))


def _marks(right, found, wrong):
    marks = np.where(found > right, "+", "-")
    marks = np.where(right == 0, "x", marks)
    marks = np.where((found == 0) & (right != 0), "0", marks)
    marks = np.where(~np.isfinite(found), "!", marks)
    return np.where(wrong, marks, "·")
