"""Checks for NaN and infinity, whose messages name the first array that holds one."""

from collections.abc import Iterable
from typing import Any

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.nn.show import named_arrays


class NotFiniteError(UserError):
    """A loss, gradient or parameter is NaN or infinite. The message names the first such array."""


def check_loss(loss: float, model: Any, cache: Any, logits: Any) -> None:
    """Check that a loss is finite.

    Args:
        loss: The loss.
        model: The model, for its parameters.
        cache: The cache of the forward pass, for its activations.
        logits: The logits of the forward pass.

    Raises:
        NotFiniteError: If the loss is not finite. The message names the first parameter that is not or, if
            all parameters are, the first activation in the order of the forward pass.
    """
    if _is_finite(loss):
        return
    activations = [*named_arrays(cache), ("logits", logits)]
    bad = first_bad(_values(model)) or first_bad(activations)
    where = (
        f"and the first bad tensor is {bad}" if bad else "though every activation is finite: a sum overflows"
    )
    raise NotFiniteError(f"the loss is {loss}, {where}")


def check_gradients(norm: float, model: Any) -> None:
    """Check that the norm of the gradient is finite.

    Raises:
        NotFiniteError: If it is not. The message names the first parameter whose gradient is not finite.
    """
    if _is_finite(norm):
        return
    bad = first_bad((f"the gradient of {name}", p.grad) for name, p in model.named_parameters())
    where = (
        f"and the first bad tensor is {bad}"
        if bad
        else "though every gradient is finite: their squares overflow"
    )
    raise NotFiniteError(f"the gradients' norm is {norm}, {where}")


def check_parameters(model: Any) -> None:
    """Check that the parameters are finite after an update, so that only finite ones are saved.

    Raises:
        NotFiniteError: If they are not. The message names the first parameter that is not finite.
    """
    values = model.values
    # If a number is not finite, the sum of squares is not finite either. The sum takes less time to compute
    # than a test of each number.
    if not _is_finite(float(array_module(values).vdot(values, values))) and first_bad([("all", values)]):
        raise NotFiniteError(
            f"the update was too large, and the first bad tensor is {first_bad(_values(model))}"
        )


def first_bad(tensors: Iterable[tuple[str, Any]]) -> str | None:
    """Return the first array that holds NaN or infinity, as "name (shape), which holds NaN", or None."""
    for name, tensor in tensors:
        xp = array_module(tensor)
        if tensor.dtype.kind == "f" and not bool(xp.isfinite(tensor).all()):
            what = "NaN" if bool(xp.isnan(tensor).any()) else "inf"
            return f"{name} ({', '.join(map(str, tensor.shape))}), which holds {what}"
    return None


def _values(model: Any) -> Iterable[tuple[str, Any]]:
    return ((f"the parameter {name}", p.value) for name, p in model.named_parameters())


def _is_finite(number: float) -> bool:
    return number - number == 0
