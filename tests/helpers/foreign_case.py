"""ForeignCase: a function of PyTorch or JAX with a hand-written derivative, right or wrong."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import npformer


@dataclass(frozen=True)
class ForeignCase:
    """A case of the gradient checker.

    Args:
        name: The name of the case.
        thing: The function, or a module.
        inputs: A function that draws the inputs, in float64 unless there is a reference.
        wrong: The name of the wrong row of the report, or "" if the gradients are correct.
        words: A part of the diagnosis of this row.
        reference: The same function in float64, for a kernel in another data type.
        options: Keyword arguments of gradcheck.
    """

    name: str
    thing: Any
    inputs: Callable[[], tuple[Any, ...]]
    wrong: str = ""
    words: str = ""
    reference: Any = None
    options: dict[str, Any] = field(default_factory=dict)


def assert_diagnosed(case):
    """Check that correct gradients pass, and that a wrong one is found in its row and named."""
    report = npformer.gradcheck(case.thing, *case.inputs(), reference=case.reference, **case.options)
    if not case.wrong:
        assert report.ok, str(report)
        return
    rows = {row.tensor: row for row in report.failures}
    assert case.wrong in rows, str(report)
    assert case.words in rows[case.wrong].diagnosis, str(report)
