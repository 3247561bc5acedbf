"""adapt: turn what gradcheck was given into a layer on NumPy arrays, whatever library it belongs to."""

import inspect
import sys
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any, Literal, TypeAlias, get_args

from npformer.checking.foreign.layer import ForeignLayer
from npformer.checking.foreign.reference import ReferenceLayer
from npformer.checking.trees import leaves
from npformer.errors import UserError
from npformer.validation import require_choice

Library: TypeAlias = Literal["torch", "jax"]


def adapt(
    thing: Any, inputs: tuple[Any, ...], reference: Any = None, *, library: Library | None = None
) -> tuple[Any, tuple[Any, ...]]:
    """Return a layer with its inputs, for NumPy or for a function of another library.

    Args:
        thing: What gradcheck was given.
        inputs: The arguments of its forward pass.
        reference: The same function in float64, for a kernel of low precision, or None.
        library: "torch" or "jax", where the inputs do not tell it.

    Returns:
        The thing and the inputs themselves if they belong to NumPy, and otherwise a ForeignLayer and its
        inputs, one for each array.

    Raises:
        UserError: If there is a reference for a layer of NumPy, if the thing cannot be called, or if there is
            no such library or it is not installed.
    """
    if library is not None:
        require_choice("library", library, get_args(Library))
    library = library or library_of(thing, inputs)
    if library is None:
        if reference is not None:
            raise UserError("reference= is for functions of PyTorch and JAX: give tensors, or leave it out")
        return thing, inputs
    adapter = _adapter_of(library)
    layer: ForeignLayer
    if reference is None:
        layer = adapter(thing, inputs)
    else:
        layer = ReferenceLayer(adapter(thing, inputs, convert=False), adapter(reference, inputs))
    return layer, tuple(layer.inputs)


def _adapter_of(library: Library) -> Any:
    """Return the class of the layers that are made of things of a library, which is optional.

    Raises:
        UserError: If it is not installed.
    """
    try:
        if library == "torch":
            from npformer.checking.foreign.torch_situations import TorchLayerInUse

            return TorchLayerInUse
        from npformer.checking.foreign.jax_layer import JaxLayer
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise UserError(
            f"library={library!r} needs {library}, which is not installed: pip install {library}"
        ) from None
    return JaxLayer


def library_of(thing: Any, inputs: Sequence[Any] = ()) -> Library | None:
    """Return "torch" or "jax" if the thing or an input belongs to that library, and otherwise None."""
    if isinstance(thing, tuple):
        return None
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    arrays = [leaf for x in inputs for leaf in leaves(x)]
    if torch is not None and (_is_of_torch(thing, torch) or any(isinstance(x, torch.Tensor) for x in arrays)):
        return "torch"
    if jax is not None and (_is_of_jax(thing, jax) or any(isinstance(x, jax.Array) for x in arrays)):
        return "jax"
    return None


def library_of_function(function: Any) -> Library | None:
    """Return "torch" or "jax" if the code of a function uses that library, and otherwise None.

    A function that jax.jit, jax.vmap, functools.partial or a decorator made is the one inside.
    """
    known = library_of(function)
    while isinstance(function, partial) or hasattr(function, "__wrapped__"):
        function = function.func if isinstance(function, partial) else function.__wrapped__
        known = known or library_of(function)
    if known or not inspect.isfunction(function):
        return known
    variables = inspect.getclosurevars(function)
    used = [*variables.globals.values(), *variables.nonlocals.values()]
    modules = [value.__name__.partition(".")[0] for value in used if isinstance(value, ModuleType)]
    return next((name for name in get_args(Library) if name in (*modules, *map(library_of, used))), None)


def is_autograd_function(thing: Any) -> bool:
    """Return whether a thing is a subclass of torch.autograd.Function, which is used without an instance."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, type) and issubclass(thing, torch.autograd.Function)


def _is_of_torch(thing: Any, torch: Any) -> bool:
    if isinstance(thing, type):
        return issubclass(thing, (torch.autograd.Function, torch.nn.Module))
    return isinstance(thing, torch.nn.Module)


def _is_of_jax(thing: Any, jax: Any) -> bool:
    return isinstance(thing, (jax.custom_vjp, jax.custom_jvp, jax.stages.Wrapped))  # the last one of jax.jit
