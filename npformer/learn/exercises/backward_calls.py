"""The calls of the learner's backward pass: noted in the child process, and replayed in the parent process.

A trial by gradient check calls the backward pass for several dy. Both processes make the same calls in the
same order. In the child a `Recorder` notes what the learner's function returns. In the parent a `Player`
returns it again, while the forward pass and the derivatives are the package's.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from npformer.backend import is_array
from npformer.checking import Report, gradcheck
from npformer.checking.check_target import CheckTarget, fresh_settings, settings_of, take_apart
from npformer.errors import UserError
from npformer.language import say
from npformer.learn.exercises.exercise import Functions, Gradients
from npformer.learn.tasks.answer import DamagedAnswer, transported
from npformer.learn.tasks.verdict import Fault

Wrap: TypeAlias = Callable[[Any], "Wrapped"]  # puts something round the backward pass of a layer or of a pair


class Wrapped:
    """A layer, or a pair (f, f_backward), with another backward pass.

    Args:
        thing: The layer or pair.
        backward: The backward pass, which takes the wrapped one and (dy, cache).
    """

    def __init__(self, thing: Any, backward: Callable[..., Any]) -> None:
        self.forward, self.inner_backward, self.parameters = take_apart(thing)
        self._backward = backward

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield the parameters of the layer with their names."""
        yield from self.parameters.items()

    def backward(self, dy: Any, cache: Any) -> Any:
        """Call the other backward pass."""
        return self._backward(self, dy, cache)


class Recorder:
    """Notes what a backward pass returns, and the gradients of the parameters after each call."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def wrap(self, thing: Any) -> Wrapped:
        """Return the layer or pair with a backward pass that is noted."""
        return Wrapped(thing, self._backward)

    def _backward(self, wrapped: Wrapped, dy: Any, cache: Any) -> Any:
        returned = wrapped.inner_backward(dy, cache)
        gradients = {name: np.array(parameter.grad) for name, parameter in wrapped.parameters.items()}
        # a copy: the learner's function may return the same array at each call
        self.calls.append({"returned": transported(returned), "gradients": gradients})
        return returned


class Player:
    """Returns what a `Recorder` noted, call by call.

    Args:
        calls: The calls.
        otherwise: The exception to raise when there are no more calls.
    """

    def __init__(self, calls: Any, otherwise: Exception) -> None:
        if not isinstance(calls, list):
            raise DamagedAnswer("no calls")
        self._calls, self._otherwise = iter(calls), otherwise

    def wrap(self, thing: Any) -> Wrapped:
        """Return the layer or pair with a backward pass that repeats the calls."""
        return Wrapped(thing, self._backward)

    def _backward(self, wrapped: Wrapped, dy: Any, cache: Any) -> Any:
        match next(self._calls, None):
            case {"returned": returned, "gradients": dict(gradients)} if set(gradients) == set(
                wrapped.parameters
            ):
                for name, parameter in wrapped.parameters.items():
                    parameter.grad = gradients[name]
                return returned
            case None:
                raise self._otherwise
        raise DamagedAnswer("no call")


# ---------------------------------------------------------------------------------------------------------
# The calls of a trial, in their order


def target_of(trial: Gradients, functions: Functions, wrap: Wrap) -> CheckTarget:
    """Return the target of a trial for gradient checks.

    Args:
        trial: The trial.
        functions: The learner's functions, or the package's if the calls are replayed.
        wrap: Puts a `Recorder` or a `Player` round the backward pass.
    """
    rng = np.random.default_rng(trial.seed)
    thing, *inputs = trial.make(functions, rng)
    return CheckTarget(wrap(thing), inputs, trial.settings, randomize=True, rng=rng)


def random_dy(trial: Gradients, y: Any) -> Any:
    """Return a random gradient of the output y of a trial."""
    return np.random.default_rng(trial.seed + 1).standard_normal(np.shape(y)) if np.ndim(y) else 0.8


def gradients_by_name(trial: Gradients, functions: Functions, wrap: Wrap) -> dict[str, Any]:
    """Return the gradients of all tensors by name.

    Args:
        trial: The trial.
        functions: The learner's functions, or the package's if the calls are replayed.
        wrap: Puts a `Recorder` or a `Player` round the backward pass.

    Raises:
        Fault: If the backward pass returned something else.
    """
    target = target_of(trial, functions, wrap)
    returned = []
    backward = target.backward

    def recorded(*args: Any) -> Any:
        returned.append(backward(*args))
        return returned[-1]

    target.backward = recorded
    y, cache = target.run()
    try:
        return target.vjp(np.array(random_dy(trial, y)), cache)
    except UserError:
        if not returned:
            raise
        raise _wrong_number(returned[-1], functions, target) from None


def _wrong_number(returned: Any, functions: Functions, target: CheckTarget) -> Fault:
    """Return the fault of a backward pass that returned something else than one gradient for each array."""
    who, due = say(" or ").join(vars(functions)), [f"d{name}" for name in target.real_inputs]
    if returned is None:
        return Fault(
            say(
                "{who} returns nothing (None): complete its body and return {names}",
                who=who,
                names=", ".join(due),
            )
        )
    if isinstance(returned, list):
        return Fault(
            say("{who} returns a list: return the arrays ({names}) as a tuple", who=who, names=", ".join(due))
        )
    many = (
        say("{n_returned} gradients", n_returned=len(returned))
        if isinstance(returned, tuple)
        else say("1 gradient")
    )
    return Fault(
        say(
            "{who} returns {many} and must return {n_due}, one for each array: ({names})",
            who=who,
            many=many,
            n_due=len(due),
            names=", ".join(due),
        )
    )


def float32_gradients(trial: Gradients, functions: Functions, wrap: Wrap) -> tuple[Any, ...]:
    """Return the gradients for float32 arrays, or () if the output is float64 nevertheless.

    Args:
        trial: The trial.
        functions: The learner's functions, or the package's if the calls are replayed.
        wrap: Puts a `Recorder` or a `Player` round the backward pass.
    """
    thing, *inputs = trial.make(functions, np.random.default_rng(trial.seed))
    layer = wrap(thing)
    low = [x.astype(np.float32) if is_array(x) and x.dtype.kind == "f" else x for x in inputs]
    y, cache = layer.forward(*low, **fresh_settings(settings_of(layer.forward, trial.settings)))
    if np.ndim(y) and y.dtype != np.float32:
        return ()  # the layer itself holds float64
    returned = layer.backward(np.ones_like(y) if np.ndim(y) else 1.0, cache)
    return returned if isinstance(returned, tuple) else (returned,)


def report_of(trial: Gradients, functions: Functions, wrap: Wrap) -> Report:
    """Return the report of the gradient checker, which does not depend on the package's backward pass.

    Args:
        trial: The trial.
        functions: The learner's functions, or the package's if the calls are replayed.
        wrap: Puts a `Recorder` or a `Player` round the backward pass.
    """
    thing, *inputs = trial.make(functions, np.random.default_rng(trial.seed))
    return gradcheck(wrap(thing), *inputs, seed=trial.seed, **trial.settings)


FURTHER_CALLS = (float32_gradients, report_of)  # after gradients_by_name
