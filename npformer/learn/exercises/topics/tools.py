"""Helpers of the declarations: trials on random arrays, and layers with the learner's backward pass."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.language import say
from npformer.learn.exercises.exercise import Functions, Gradients, Task
from npformer.learn.tasks.verdict import Fault


class Borrowed:
    """A layer of the package whose backward pass is the learner's function backward(layer, dy, cache)."""

    def __init__(self, layer: Any, backward: Callable[..., Any]) -> None:
        self.layer, self._backward = layer, backward
        self.forward = layer.forward

    def named_parameters(self) -> Any:
        """Return the layer's parameters."""
        return self.layer.named_parameters()

    def backward(self, dy: Array, cache: Any) -> Any:
        """Call the learner's function."""
        return self._backward(self.layer, dy, cache)


def output(returned: Any) -> Any:
    """Return the output of a forward pass without its cache, which the learner need not return."""
    return returned[0] if isinstance(returned, tuple) and len(returned) == 2 else returned


def output_and_cache(name: str, returned: Any, kind: type) -> tuple[Any, Any]:
    """Return the output and the cache that a forward pass of the learner returned.

    Args:
        name: The name of the learner's function, for messages.
        returned: What it returned.
        kind: The class of the cache.

    Raises:
        Fault: If these are not an output and a cache of this class.
    """
    due = say("y and the cache, a {kind}", kind=kind.__name__)
    if returned is None:
        raise Fault(
            say("{who} returns nothing (None): complete its body and return {names}", who=name, names=due)
        )
    if type(returned) is not tuple or len(returned) != 2:
        raise Fault(
            say(
                "{name} returns a {type} and must return {due}, as a tuple of the two",
                name=name,
                type=type(returned).__name__,
                due=due,
            )
        )
    if not isinstance(returned[1], kind):
        is_class = returned[1] is kind
        what = say("the class itself") if is_class else say("a {type}", type=type(returned[1]).__name__)
        raise Fault(
            say(
                "the cache that {name} returns is {what} and must be a {kind} of the arrays",
                name=name,
                what=what,
                kind=kind.__name__,
            )
        )
    return returned


def without_like(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a mask function of the package so that, like the learner's, it takes no argument `like`."""
    if "like" in inspect.signature(function).parameters:
        return lambda *args: function(*args, np.zeros(1))
    return function


def pair_trial(
    label: str, forward: Callable[..., Any], name: str, *shapes: Any, **settings: Any
) -> Gradients:
    """Return a gradient check of the pair (forward, own.name) on normal inputs.

    Args:
        label: A name for the trial; "" if it needs none.
        forward: The package's forward function.
        name: The name of the learner's function.
        shapes: The shape of each input, or the input itself.
        settings: Keyword arguments of forward.
    """

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, ...]:
        inputs = [rng.standard_normal(s) if isinstance(s, tuple) else s for s in shapes]
        return ((forward, getattr(own, name)), *inputs)

    return Gradients(label, make, settings)


def pairs(forward: Callable[..., Any], *trials: Any) -> Task:
    """Return the task to write the backward pass of a function of npformer.functional.

    Args:
        forward: The function. The learner's function has its name and "_backward".
        trials: For each trial, its label, then the shapes, as in `pair_trial`. Keyword arguments of forward
            may stand at the end, in a dict.
    """
    name = f"{forward.__name__}_backward"

    def trial(label: str, *shapes: Any) -> Gradients:
        settings = shapes[-1] if isinstance(shapes[-1], dict) else {}
        return pair_trial(label, forward, name, *shapes[: len(shapes) - bool(settings)], **settings)

    return Task(getattr(F, name), *(trial(*row) for row in trials))


def layer_trial(label: str, build: Callable[..., Any], name: str, *shapes: Any, **settings: Any) -> Gradients:
    """Return a gradient check of the layer build(rng) with own.name as its backward pass.

    Args:
        label: A name for the trial; "" if it needs none.
        build: Returns the layer.
        name: The name of the learner's function.
        shapes: The shape of each input, or the input itself.
        settings: Keyword arguments of forward.
    """

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, ...]:
        layer = build(rng)
        inputs = [rng.standard_normal(s) if isinstance(s, tuple) else s for s in shapes]
        return (Borrowed(layer, getattr(own, name)), *inputs)

    return Gradients(label, make, settings)
