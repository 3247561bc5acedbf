"""The data of the page of a layer: its cache, its parameters, and the gradients that it computes."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.holders import named_parameters
from npformer.errors import UserError, quantity
from npformer.explorer.call_tree import Call, watched
from npformer.explorer.code_lines import code_of_steps
from npformer.explorer.model_data import PageData, title_of
from npformer.explorer.steps import Recording, arrays_of, require_size, steps_data
from npformer.explorer.steps.recording import is_known
from npformer.kernels import plain_pairs
from npformer.nn.module import Module
from npformer.version import __version__


def data_of_layer(layer: Any, inputs: Sequence[Array], dy: Array | None = None) -> PageData:
    """Return the data of the page of a layer: its cache, its parameters, and all gradients that it computes.

    Args:
        layer: The layer, with forward(x, ...) -> (y, cache) and backward(dy, cache) -> dx.
        inputs: The arguments of forward.
        dy: The gradient of the output. By default, it is drawn at random.

    Raises:
        UserError: If the layer does not keep to this form.
    """
    _require_layer(layer, inputs)
    name, copied = type(layer).__name__, copy.deepcopy(layer)
    for _, parameter in named_parameters(copied):
        parameter.grad = np.zeros_like(parameter.value)
    call = _called(copied, inputs, dy, name)
    # the arithmetic of the steps is that of one example, of shape (1, T, D)
    is_example = all(getattr(each, "ndim", 3) == 3 and len(each) == 1 for each in inputs)
    recording = Recording(copied, unknown_line="layer")
    _record_inputs(recording, call, inspect.signature(layer.forward), is_example)
    _record_attributes(recording, copied)
    call.cache = _named_cache(layer, call.cache)
    if is_example and isinstance(copied, Module):
        recording.emit(call)
        if not is_known(type(copied)):  # what its own lines compute
            recording.emit_unknown(call, "", "layer")
    else:
        recording.emit_arrays(call, "layer")
    arrays = arrays_of(recording)
    require_size(arrays, name, "input")
    head = {
        "kind": "recorded",
        "title": title_of(name),
        "npformer": __version__,
        "model": {"name": name, "parameters": sum(p.value.size for _, p in named_parameters(copied))},
        "architecture": "layer",
        "config": {},
        "example": {"source": name, "target": None},
        "lines": code_of_steps() | {"layer": _source_of(layer)},
    }
    return PageData(head | steps_data(recording), arrays)


def _require_layer(layer: Any, inputs: Sequence[Any]) -> None:
    """Check that a layer has the two methods, and that forward takes the inputs.

    Raises:
        UserError: If it does not.
    """
    if isinstance(layer, type):
        raise UserError(f"{layer.__name__} is a class: give a layer of this class, {layer.__name__}(...)")
    name = type(layer).__name__
    for method in ("forward", "backward"):
        if not callable(getattr(layer, method, None)):
            raise UserError(f"{name} has no method {method}: write one, as in lesson 0.2")
    for index, each in enumerate(inputs, 1):
        if isinstance(each, (list, tuple)):
            raise UserError(f"input {index} of {name} is a {type(each).__name__}: give an array of NumPy")
    try:
        inspect.signature(layer.forward).bind(*inputs)
    except TypeError as error:
        raise UserError(
            f"forward of {name} does not take {quantity(len(inputs), 'input')} ({error}): give the arrays "
            "that it takes"
        ) from None


def _called(layer: Any, inputs: Sequence[Array], dy: Array | None, name: str) -> Call:
    """Run a layer in both directions, and return the call with those of the layers in it."""
    if isinstance(layer, Module):
        with plain_pairs(), watched(layer) as root:
            _run(layer, inputs, dy, name)
        return root.children[0]
    call = Call(layer, "", tuple(inputs))
    call.output, call.cache, call.d_output, call.d_inputs = _run(layer, inputs, dy, name)
    return call


def _run(layer: Any, inputs: Sequence[Array], dy: Array | None, name: str) -> tuple[Any, Any, Array, Any]:
    """Run a layer in both directions, and return (y, cache, dy, dx). dy is drawn at random if it is None."""
    returned = layer.forward(*inputs)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise UserError(f"forward of {name} returns {type(returned).__name__}: return a pair (y, cache)")
    y, cache = returned
    if not isinstance(y, np.ndarray) or y.dtype.kind != "f":
        raise UserError(f"the output of {name} is of type {type(y).__name__}: return an array of floats")
    if dy is None:
        dy = np.asarray(np.random.default_rng(0).standard_normal(y.shape)).astype(y.dtype)
    if dy.shape != y.shape:
        raise UserError(f"dy has shape {dy.shape} and the output of {name} {y.shape}: make them equal")
    return y, cache, dy, layer.backward(dy, cache)


def _record_inputs(recording: Recording, call: Call, signature: inspect.Signature, squeeze: bool) -> None:
    """Add the inputs of a layer, by the names of the arguments of forward, with their gradients."""
    names = list(signature.parameters)
    gradients = iter(call.d_inputs if isinstance(call.d_inputs, tuple) else (call.d_inputs,))
    for index, array in enumerate(call.inputs):
        name = names[index] if index < len(names) else f"x{index}"
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            recording.record("parameter", name, array, next(gradients, None), line="layer", squeeze=squeeze)


def _record_attributes(recording: Recording, layer: Any) -> None:
    """Add the arrays of a layer that is no Module: the gradient of its array `weight` is `dweight`."""
    attributes = vars(layer) if hasattr(layer, "__dict__") and not isinstance(layer, Module) else {}
    arrays = {name: each for name, each in attributes.items() if isinstance(each, np.ndarray)}
    gradients = {f"d{name}" for name in arrays}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name not in gradients:
            grad = arrays.get(f"d{name}")
            known = grad if grad is not None and grad.shape == array.shape else None
            recording.record("parameter", name, array, known, line="layer", squeeze=False)


def _named_cache(layer: Any, cache: Any) -> Any:
    """Return an unnamed tuple as a dict, with the names that the line "return y, (...)" of forward gives."""
    if type(cache) is not tuple:
        return cache
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(type(layer).forward)))
    except (OSError, TypeError):  # typed at a prompt
        return cache
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Return) else None
        if isinstance(value, ast.Tuple) and len(value.elts) == 2 and isinstance(value.elts[1], ast.Tuple):
            names = [each.id if isinstance(each, ast.Name) else "" for each in value.elts[1].elts]
            if len(names) == len(cache):
                return {name or str(i): each for i, (name, each) in enumerate(zip(names, cache, strict=True))}
    return cache


def _source_of(layer: Any) -> dict[str, Any]:
    """Return the source of both passes of a layer, as `code_of_steps` returns that of the package."""
    data: dict[str, Any] = {"code": "", "gradient": [], "lesson": "00_2_forward_and_backward.py"}
    for method, prefix in (("forward", ""), ("backward", "gradient_")):
        function = getattr(type(layer), method)
        try:
            lines, line = inspect.getsourcelines(function)
            file = Path(inspect.getsourcefile(function) or "").name
        except (OSError, TypeError):  # typed at a prompt
            lines, line, file = [], 0, ""
        data |= {
            f"{prefix}source": textwrap.dedent("".join(lines)),
            f"{prefix}line": line,
            f"{prefix}file": file,
            f"{prefix}function": f"{type(layer).__name__}.{method}",
        }
    return data
