"""The calls of all layers of a model in one forward and backward pass, with their arrays and gradients.

The caches of a forward pass hold its arrays. The gradients of these arrays pass through the backward methods
of the layers and are not kept. Here both methods of each layer are watched, so that each call of a layer is
known with its input, output and cache, and with the gradients of its output and of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from npformer.backend import is_array
from npformer.functional.caches import members
from npformer.nn.module import Module


@dataclass(eq=False)
class Call:
    """One call of a layer.

    Attributes:
        module: The layer.
        path: Its dotted name in the model.
        inputs: The positional arguments of forward.
        output: The output of forward.
        cache: The cache of forward.
        children: The calls of other layers during this one, in order.
        d_output: The gradient of the output, or None before the backward pass.
        d_inputs: What backward returned.
    """

    module: Module
    path: str
    inputs: tuple[Any, ...]
    output: Any = None
    cache: Any = None
    children: list[Call] = field(default_factory=list)
    d_output: Any = None
    d_inputs: Any = None

    def child(self, module: Module | None) -> Call | None:
        """Return the call of a layer during this call, or None if there was none."""
        return next((call for call in self.children if call.module is module), None)

    def part(self, module: Module) -> Call:
        """Return the call of a layer that every call of this one calls."""
        return next(call for call in self.children if call.module is module)


def calls_in(call: Call) -> Iterator[Call]:
    """Yield all calls during a call, in the order in which they began."""
    for child in call.children:
        yield child
        yield from calls_in(child)


@contextmanager
def watched(model: Module) -> Iterator[Call]:
    """Watch all layers of a model inside a with block.

    Args:
        model: The model. Its layers get their own methods back at the end.

    Yields:
        A call that stands for the caller: its children are the calls of the model.
    """
    modules = list(model.named_modules())
    root = Call(model, "", ())
    stack, by_cache = [root], dict[int, Call]()
    try:
        for path, module in modules:
            if not (hasattr(module, "forward") and hasattr(module, "backward")):
                continue  # a part that only holds others
            module.forward = _watched_forward(module, path, stack, by_cache)
            module.backward = _watched_backward(module, by_cache)
        yield root
    finally:
        for _, module in modules:
            vars(module).pop("forward", None)
            vars(module).pop("backward", None)


def _watched_forward(
    module: Module, path: str, stack: list[Call], by_cache: dict[int, Call]
) -> Callable[..., Any]:
    """Return the forward method of a layer that also records its calls."""
    forward = module.forward

    def record(*inputs: Any, **settings: Any) -> Any:
        call = Call(module, path, inputs)
        stack[-1].children.append(call)
        stack.append(call)
        try:
            returned = forward(*inputs, **settings)
        finally:
            stack.pop()
        if isinstance(returned, tuple) and len(returned) == 2:
            call.output, call.cache = returned
        if members(call.cache) or is_array(call.cache):
            by_cache[id(call.cache)] = call  # which keeps the cache alive, so that no other one gets its id
        return returned

    return record


def _watched_backward(module: Module, by_cache: dict[int, Call]) -> Callable[..., Any]:
    """Return the backward method of a layer that also records the gradients."""
    backward = module.backward

    def record(d_output: Any, cache: Any, *others: Any, **settings: Any) -> Any:
        d_inputs = backward(d_output, cache, *others, **settings)
        call = by_cache.get(id(cache))
        if call is not None:
            call.d_output, call.d_inputs = d_output, d_inputs
        return d_inputs

    return record
