"""TorchLayer: a torch.autograd.Function, an nn.Module or a function on tensors as a layer on NumPy arrays."""

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from npformer.backend import Array, is_array
from npformer.checking.foreign.layer import (
    ForeignLayer,
    Graph,
    argument_names,
    named_outputs,
    single_or_tuple,
)
from npformer.checking.foreign.torch_errors import forward_error, wrong_backward
from npformer.checking.foreign.torch_graph import saved_tensors, saves_numbers
from npformer.checking.trees import leaves, map_tree
from npformer.errors import UserError
from npformer.nn.module import Parameter

REASON_NONE = "backward returns None for it, and the output depends on it: return its gradient"
REASON_CUT = (
    "the output does not require a gradient: forward leaves the graph, by torch.no_grad(), .detach(), .data "
    "or NumPy, or marks its output as not differentiable"
)


LayOut: TypeAlias = Callable[[torch.Tensor], torch.Tensor]  # it copies a tensor into another memory layout


class Tensors(NamedTuple):
    """The tensors of one forward pass."""

    leaves: dict[str, torch.Tensor]  # of which the gradients are computed, by name
    arguments: list[Any]  # one for each input: the copies that the function received


class TorchLayer(ForeignLayer):
    """A thing of PyTorch as a layer.

    A module is copied, and the copy is converted to float64, so the module itself stays as it is.

    Args:
        thing: A subclass of torch.autograd.Function, an nn.Module, or a function on tensors.
        inputs: Its arguments.
        convert: Compute in float64. Otherwise in the data types of the inputs and parameters.

    Raises:
        UserError: If the thing is a class of modules, or cannot be called or copied.
    """

    def __init__(self, thing: Any, inputs: Sequence[Any], *, convert: bool = True) -> None:
        call, signature, skip = _callable(thing)
        names = argument_names(signature, skip, len(inputs))
        super().__init__(_name(thing), names, inputs, _to_array)
        flat = list(leaves(list(inputs)))
        self.devices = [x.device if isinstance(x, torch.Tensor) else torch.device("cpu") for x in flat]
        self.dtypes = [None if convert or not isinstance(x, torch.Tensor) else x.dtype for x in flat]
        self.convert = convert
        self.holder = thing if isinstance(thing, torch.nn.Module) else None
        self._call = call
        self.saves_intermediates = False  # whether a Function saved more than inputs and outputs
        self.functions = _functions(thing)
        self.constant: list[bool] = []  # for each output, whether it alone of several has no gradient
        if isinstance(thing, torch.nn.Module):
            self._set_module(thing)
        self.epsilon = self._largest_epsilon()

    def _largest_epsilon(self) -> float:
        own = [dtype for dtype in self.dtypes if dtype is not None]
        own += [p.dtype for p in self.holder.parameters()] if self.parameters else []
        return max((torch.finfo(dtype).eps for dtype in own if dtype.is_floating_point), default=self.epsilon)

    def _set_module(self, module: torch.nn.Module) -> None:
        try:
            self.holder = copy.deepcopy(module)
        except Exception as error:  # a module may hold anything
            raise UserError(f"{self.name} cannot be copied ({type(error).__name__}: {error})") from error
        if self.convert:
            self.holder = self.holder.double()
        self._call = self.holder
        self.parameters = {
            name: Parameter(_to_array(p)) for name, p in self.holder.named_parameters() if p.requires_grad
        }
        self._buffers = {name: b.detach().clone() for name, b in self.holder.named_buffers()}

    def forward(self, *inputs: Any, **settings: Any) -> tuple[Any, Graph]:
        """Run the function on tensors and return its output as NumPy arrays, with the graph.

        Raises:
            UserError: If the function does not take float64, or returns no tensor.
        """
        if any(is_array(x) and x.dtype.kind == "c" for x in inputs):
            return self._complex_forward(inputs, settings), Graph({}, None, None)
        self.point, self.settings = inputs, settings
        tensors = self.tensors(inputs)
        outputs = self.call(tensors, settings)
        _write_back(tensors, inputs, self.input_names)
        given = [*tensors.leaves.values(), *(x for x in tensors.arguments if isinstance(x, torch.Tensor))]
        saved = dict(saved_tensors(outputs, given))
        own = {t.data_ptr() for t in leaves(outputs) if isinstance(t, torch.Tensor)}
        self.saves_intermediates = any(t.data_ptr() not in own for t in saved.values()) or saves_numbers(
            outputs
        )
        arrays = {name: _view(t) for name, t in saved.items()}
        parts = list(leaves(outputs))
        some = any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts)
        self.constant = [
            some and isinstance(part, torch.Tensor) and part.is_floating_point() and not part.requires_grad
            for part in parts
        ]
        y = self._arrays(outputs)
        return y, Graph(named_outputs(y) | arrays, outputs, tensors)

    def _arrays(self, outputs: Any) -> Any:
        """Return the outputs as NumPy arrays, and 0 for one that has no gradient beside others."""
        constant = iter(self.constant)
        return map_tree(lambda part: 0 if next(constant) else _to_numpy(part), outputs)

    def tensors(
        self, inputs: Sequence[Any], lay_out: LayOut = torch.clone, only: set[str] | None = None
    ) -> Tensors:
        """Return the tensors of a forward pass at these inputs.

        Args:
            inputs: NumPy arrays and other arguments.
            lay_out: A function that copies a tensor into another memory layout.
            only: The names of the tensors that require a gradient. The default is all.
        """
        found: dict[str, torch.Tensor] = {}
        arguments: list[Any] = []
        for name, x, device, dtype in zip(self.input_names, inputs, self.devices, self.dtypes, strict=True):
            tensor = torch.from_numpy(np.array(x)).to(device) if is_array(x) else x
            if is_array(x) and x.dtype.kind == "f":
                leaf = tensor.to(dtype or torch.float64).requires_grad_(only is None or name in only)
                found[name] = leaf
                tensor = lay_out(leaf)  # no leaf, so that the function may work in place
            arguments.append(tensor)
        for name, parameter in self.parameters.items():
            own = self.holder.get_parameter(name)
            own.data = torch.from_numpy(np.array(parameter.value)).to(own)
            found[name] = own.requires_grad_(only is None or name in only)
        return Tensors(found, arguments)

    def call(self, tensors: Tensors, settings: dict[str, Any]) -> Any:
        """Return the output of the function, as tensors."""
        self._restore_buffers()
        self.restore_generators()
        try:
            with torch.enable_grad():
                outputs = self._call(*self.arguments(tensors.arguments), **settings)
        except Exception as error:  # the function may raise anything
            raise forward_error(self.name, error, self.convert) from error
        if not any(isinstance(part, torch.Tensor) for part in leaves(outputs)):
            raise UserError(f"{self.name} returned no tensor: return the output as a tensor")
        return outputs

    def _complex_forward(self, inputs: Sequence[Any], settings: dict[str, Any]) -> Any:
        """Return the output for complex inputs. It raises whatever the function raises."""
        call = self._call
        if isinstance(self.holder, torch.nn.Module):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # complex modules may not work: then differences take over
                module = copy.deepcopy(self.holder).to(torch.complex128)
            for name, parameter in self.parameters.items():
                module.get_parameter(name).data = torch.from_numpy(np.array(parameter.value, np.complex128))
            call = module
        tensors = [
            torch.from_numpy(np.array(x)).to(d) if is_array(x) else x
            for x, d in zip(inputs, self.devices, strict=True)
        ]
        with torch.no_grad():
            return self._arrays(call(*self.arguments(tensors), **settings))

    def backward(self, dy: Any, cache: Graph) -> Any:
        """Run the backward pass of PyTorch's graph.

        Raises:
            WrongBackward: If it raises an error.
        """
        found = self.gradients(cache, dy)
        for name, parameter in self.parameters.items():
            parameter.grad = parameter.grad + found[name]
        return single_or_tuple([g for name, g in found.items() if name not in self.parameters])

    def rerun(
        self,
        dy: Any,
        *,
        lay_out: LayOut = torch.clone,
        only: set[str] | None = None,
        moved: dict[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Run forward and backward on the inputs of the check, and return the gradients by name.

        Args:
            dy: The gradients of the outputs, as NumPy arrays or tensors.
            lay_out: A function that copies each input into another memory layout.
            only: The names of the tensors that require a gradient. The default is all.
            moved: Arrays to be added to some of the inputs, by name.
        """
        changes = moved or {}
        inputs = [
            np.asarray(x + changes[n]) if n in changes else x
            for n, x in zip(self.input_names, self.point, strict=True)
        ]
        tensors = self.tensors(inputs, lay_out, only)
        return self.gradients(Graph({}, self.call(tensors, self.settings), tensors), dy)

    def gradients(self, graph: Graph, dy: Any, **options: Any) -> dict[str, Array]:
        """Return the gradient of every leaf of a graph as a NumPy array, and note why one is missing.

        Args:
            graph: The graph of a forward pass.
            dy: The gradients of its outputs. An output with None in place of a gradient is left out.
            options: Keyword arguments of torch.autograd.grad.

        Raises:
            WrongBackward: If the backward pass raises an error.
        """
        pairs = list(differentiable_pairs(graph.outputs, dy))
        leaf = {name: t for name, t in graph.computation.leaves.items() if t.requires_grad}
        self.reasons = {} if pairs else dict.fromkeys(leaf, REASON_CUT)
        returned: Sequence[torch.Tensor | None] = [None] * len(leaf)
        if pairs:
            outputs, along = zip(*pairs, strict=True)
            try:
                returned = torch.autograd.grad(
                    outputs, list(leaf.values()), along, retain_graph=True, allow_unused=True, **options
                )
            except Exception as error:  # the backward pass may raise anything
                raise wrong_backward(error, self._shapes()) from error
        found = {}
        for (name, tensor), g in zip(leaf.items(), returned, strict=True):
            if g is None:
                self.reasons.setdefault(name, REASON_NONE)
            found[name] = np.zeros(tensor.shape) if g is None else _to_array(g)
        return found

    def _shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        pairs = zip(self.input_names, self.inputs, strict=True)
        return [(name, x.shape) for name, x in pairs if is_array(x)]

    def _restore_buffers(self) -> None:
        """Give the buffers of a module their first values: a forward pass may have changed them."""
        if not isinstance(self.holder, torch.nn.Module):
            return
        for name, buffer in self.holder.named_buffers():
            first = self._buffers.get(name)
            if first is not None and not torch.equal(buffer, first):
                buffer.data = first.clone()


def differentiable_pairs(outputs: Any, dy: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield pairs (output, gradient) of the outputs that have a gradient."""
    for y, d in zip(leaves(outputs), leaves(dy), strict=True):
        if isinstance(y, torch.Tensor) and y.requires_grad and d is not None:
            given = d if isinstance(d, torch.Tensor) else torch.from_numpy(np.asarray(d))
            yield y, given.to(device=y.device, dtype=y.dtype)


def _callable(thing: Any) -> tuple[Callable[..., Any], Any, int]:
    """Return the function to call, the function that names its arguments, and how many of these to skip."""
    if _is_autograd_function(thing):
        with_ctx = thing.setup_context is torch.autograd.Function.setup_context
        return thing.apply, thing.forward, int(with_ctx)
    if isinstance(thing, type) and issubclass(thing, torch.nn.Module):
        raise UserError(f"{thing.__name__} is a class: give a module, as {thing.__name__}() makes one")
    if isinstance(thing, torch.nn.Module):
        return thing, thing.forward, 0
    if not callable(thing):
        raise UserError(f"a {type(thing).__name__} cannot be called: give a function, a Function or a module")
    owner = getattr(thing, "__self__", None)  # MyFunction.apply
    if _is_autograd_function(owner):
        _, signature, skip = _callable(owner)
        return thing, signature, skip
    return thing, thing, 0


def _is_autograd_function(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, torch.autograd.Function)


def _functions(thing: Any) -> list[Any]:
    """Return the functions of the user that a thing consists of."""
    if isinstance(thing, torch.nn.Module):
        return [
            type(part).forward for part in thing.modules() if not type(part).__module__.startswith("torch.")
        ]
    owner: Any = thing if isinstance(thing, type) else getattr(thing, "__self__", None)
    return [owner.forward, owner.backward] if _is_autograd_function(owner) else [thing]


def _name(thing: Any) -> str:
    owner = getattr(thing, "__self__", None)
    if isinstance(owner, type):
        return owner.__name__
    return getattr(thing, "__name__", type(thing).__name__)


def _to_array(x: Any) -> Any:
    """Return a tensor as a NumPy array, in float64 if it holds floats, and other arguments as they are."""
    if not isinstance(x, torch.Tensor):
        return np.array(x, np.float64) if is_array(x) and x.dtype.kind == "f" else x
    if x.is_complex():
        raise UserError("complex tensors are not supported: give real ones")
    x = x.detach().cpu()
    return (x.double() if x.is_floating_point() else x).numpy().copy()


def _view(tensor: torch.Tensor) -> Array:
    """Return a NumPy array that shares the memory of a tensor where NumPy can."""
    tensor = tensor.detach()
    return (
        tensor.numpy()
        if tensor.dtype != torch.bfloat16 and tensor.device.type == "cpu"
        else _to_array(tensor)
    )


def _to_numpy(part: Any) -> Any:
    """Return an output as a NumPy array, and 0 in place of an object that is not an array."""
    if not isinstance(part, torch.Tensor):
        return part if is_array(part) or isinstance(part, int) else 0
    part = part.detach().cpu().resolve_conj().resolve_neg()
    return (part.float() if part.dtype == torch.bfloat16 else part).numpy()


def _write_back(tensors: Tensors, inputs: Sequence[Any], names: Sequence[str]) -> None:
    """Write inputs that forward modified without telling autograd into the arrays of the checker."""
    for name, x, argument in zip(names, inputs, tensors.arguments, strict=True):
        leaf = tensors.leaves.get(name)
        if leaf is None or argument.grad_fn is None or type(argument.grad_fn).__name__ not in _COPIES:
            continue  # an operation in place that autograd knows, such as one after ctx.mark_dirty
        if not torch.equal(argument.detach(), leaf.detach()):
            x[...] = _to_array(argument)


_COPIES = ("CloneBackward0", "ToCopyBackward0")
