"""Mutants that change nothing that anyone could notice, each with the reason why."""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A declaration that a mutant computes the same, for every input."""

    file: str
    function: str
    before: str
    after: str
    reason: str

    def matches(self, mutant):
        """Return True if the mutant is the declared one."""
        return self[:4] == (mutant.file, mutant.function, mutant.before, mutant.after)


EQUIVALENT = (
    Equivalent(
        "kernels/cpu/attention.py",
        "attention",
        "query_mask is not None or masking != EXACT or not _suits(q, k, v)",
        "query_mask is not None or masking != EXACT or not _suits(k, q, v)",
        "_suits accepts only q and k with equal leading axes, so its answer does not depend on their order",
    ),
)


def is_equivalent(mutant):
    """Return True if the mutant is declared to be equivalent."""
    return any(declared.matches(mutant) for declared in EQUIVALENT)
