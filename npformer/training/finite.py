"""Where a number stopped being a number: the first tensor that holds NaN or infinity."""

from collections.abc import Iterable
from typing import Any

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.show import named_arrays


class NotFiniteError(UserError):
    """A loss or a gradient is NaN or infinite; the sentence names the first tensor that is."""


def check_loss(loss: float, model: Any, cache: Any, logits: Any) -> None:
    """Refuse a loss that is NaN or infinite.

    Errors: NotFiniteError naming the first bad parameter or, with all of them sound, the first bad
    activation in the order of the forward pass.
    """
    if _is_finite(loss):
        return
    activations = [*named_arrays(cache), ("logits", logits)]
    bad = first_bad(_values(model)) or first_bad(activations) or "no single activation is, but their sum"
    raise NotFiniteError(f"the loss is {loss}, and the first bad tensor is {bad}")


def check_gradients(norm: float, model: Any) -> None:
    """Refuse gradients whose length is NaN or infinite, naming the first parameter that has such a one."""
    if _is_finite(norm):
        return
    bad = first_bad((f"the gradient of {name}", p.grad) for name, p in model.named_parameters())
    where = f"and the first bad tensor is {bad}" if bad else "though no single one is: their squares overflow"
    raise NotFiniteError(f"the gradients' norm is {norm}, {where}")


def check_parameters(model: Any) -> None:
    """Refuse parameters that are NaN or infinite after an update, so that none is ever saved."""
    values = model.values
    # one number that is not finite spoils the sum of squares, which is quicker than to look at each
    if not _is_finite(float(array_module(values).vdot(values, values))) and first_bad([("all", values)]):
        raise NotFiniteError(
            f"the update was too large, and the first bad tensor is {first_bad(_values(model))}"
        )


def first_bad(tensors: Iterable[tuple[str, Any]]) -> str | None:
    """The first of the named tensors with a NaN or an infinity, as "name (shape), which holds NaN"."""
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
