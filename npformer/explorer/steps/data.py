"""The steps of a recording as data of a page."""

from __future__ import annotations

from typing import Any

from npformer.backend import Array
from npformer.errors import UserError
from npformer.explorer.steps.recording import Recording

LARGEST_PAGE = 10_000_000  # numbers of a recorded page, which then has 53 MB


def steps_data(recording: Recording) -> dict[str, Any]:
    """Return the steps of a recording as JSON values, without their numbers."""
    number = {id(step): index for index, step in enumerate(recording.steps)}
    steps = [
        {
            "path": step.path,
            "op": step.op,
            "shape": list(step.data.shape),
            "inputs": [number[id(each)] for each in step.inputs],
            "line": step.line,
            "note": step.note,
            "grad": step.grad is not None,
        }
        for step in recording.steps
    ]
    aliases = {name: number[id(step)] for name, step in recording.names.items() if name != step.path}
    return {"steps": steps, "aliases": aliases}


def arrays_of(recording: Recording) -> list[Array]:
    """Return the values of each step, followed by their gradient if it is known."""
    return [array for step in recording.steps for array in (step.data, step.grad) if array is not None]


def require_size(arrays: list[Array], owner: str, what: str) -> None:
    """Check that a page has room for its arrays.

    Args:
        arrays: The arrays.
        owner: What they belong to, for the message.
        what: The noun for what must be smaller, for the message.

    Raises:
        UserError: If it has not.
    """
    count = sum(array.size for array in arrays)
    if count > LARGEST_PAGE:
        raise UserError(
            f"the arrays of {owner} have {count:,} numbers, and a page has room for {LARGEST_PAGE:,}: give a "
            f"shorter {what}"
        )
