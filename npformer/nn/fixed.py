"""Parameters that do not learn: those whose gradients nobody needs, and those beside which others learn."""

from __future__ import annotations

from typing import Any

from npformer.nn.module import Module, Parameter


class FixedParameter(Parameter):
    """A parameter that does not learn, and whose gradient would only fill the memory of a large model.

    It has none, and what a backward pass adds to it is dropped.
    """

    def accumulate(self, gradient: Any, *, at: Any = ...) -> None:
        """Drop a gradient. If a kernel has not evaluated it yet, it is never evaluated."""


def fixed_parameters(model: Module) -> dict[int, Any]:
    """Return, for Module.shared_copy, a FixedParameter in the place of each parameter of a model."""
    return {id(p): FixedParameter(p.value) for p in model.parameters()}
