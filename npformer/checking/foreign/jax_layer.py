"""JaxLayer: a function of JAX, with custom_vjp, custom_jvp or without, as a layer on NumPy arrays."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from npformer.backend import Array, is_array
from npformer.checking.foreign.layer import (
    ForeignLayer,
    Graph,
    Situation,
    WrongBackward,
    argument_names,
    named_outputs,
    relative,
    single_or_tuple,
    smallest_size,
)
from npformer.checking.trees import leaves, map_tree
from npformer.errors import UserError

JIT_TOLERANCE = 1e-10  # the compiler may sum in another order


class JaxLayer(ForeignLayer):
    """A function of JAX as a layer, in float64 for the time of each call.

    Args:
        thing: The function.
        inputs: Its arguments. Arrays, also in lists, tuples and dicts, are checked; others are passed on.
        convert: Compute in float64. Otherwise in the data types of the inputs.

    Raises:
        UserError: If the thing cannot be called.
    """

    def __init__(self, thing: Any, inputs: Sequence[Any], *, convert: bool = True) -> None:
        if not callable(thing):
            raise UserError(f"a {type(thing).__name__} cannot be called: give a function")
        names = argument_names(thing, 0, len(inputs))
        super().__init__(getattr(thing, "__name__", type(thing).__name__), names, inputs, _to_array)
        self.convert, self._call = convert, thing
        parts = (getattr(thing, name, None) for name in ("fun", "fwd", "bwd", "jvp"))
        self.functions = [thing, *filter(None, parts)]
        flat = list(leaves(list(inputs)))
        self.dtypes = [None if convert or not isinstance(x, jax.Array) else x.dtype for x in flat]
        low = [d for d in self.dtypes if d is not None and jnp.issubdtype(d, jnp.floating)]
        self.epsilon = max((float(jnp.finfo(d).eps) for d in low), default=self.epsilon)

    def forward(self, *inputs: Any, **settings: Any) -> tuple[Any, Graph]:
        """Run the function and return its output as NumPy arrays, with the function that runs its backward.

        Raises:
            UserError: If the function raises an error.
        """
        with _float64():
            if any(is_array(x) and x.dtype.kind == "c" for x in inputs):
                arrays = [jnp.asarray(x) if is_array(x) else x for x in inputs]
                return _to_numpy(self._call(*self.arguments(arrays), **settings)), Graph({}, None, None)
            self.point, self.settings = inputs, settings
            self.restore_generators()
            outputs, vjp = self._vjp(self._arrays(inputs), _real(inputs), settings)
            y = _to_numpy(outputs)
            return y, Graph(named_outputs(y) | _residuals(vjp), outputs, vjp)

    def _vjp(self, arrays: Sequence[Any], real: list[int], settings: dict[str, Any]) -> tuple[Any, Any]:
        """Return the output, and the function of dy that returns the gradients at the places `real`."""

        def function(*values: Any) -> Any:
            changed = dict(zip(real, values, strict=True))
            return self._call(*self.arguments([changed.get(i, x) for i, x in enumerate(arrays)]), **settings)

        try:
            outputs = function(*(arrays[i] for i in real))
        except Exception as error:  # the function may raise anything
            raise UserError(
                f"{self.name} raised {type(error).__name__} in forward ({_shortened(error)})"
            ) from error
        try:
            return outputs, jax.vjp(function, *(arrays[i] for i in real))[1]
        except Exception as error:  # a rule may raise anything
            raise wrong_rule(error) from error

    def _arrays(self, inputs: Sequence[Any]) -> list[Any]:
        return [
            jnp.asarray(x, dtype) if is_array(x) else x for x, dtype in zip(inputs, self.dtypes, strict=True)
        ]

    def backward(self, dy: Any, cache: Graph) -> Any:
        """Run the backward pass of JAX.

        Raises:
            WrongBackward: If it raises an error.
        """
        with _float64():
            try:
                returned = cache.computation(_cotangent(dy, cache.outputs))
            except Exception as error:  # a rule may raise anything
                raise wrong_rule(error) from error
            return single_or_tuple([np.asarray(g, np.float64) for g in returned])

    def situations(self, dy: Any, grads: dict[str, Array], *, hessian: bool) -> Iterator[Situation]:
        """Yield the error of the backward pass in a compiled function.

        Args:
            dy: A gradient of the output.
            grads: The gradients of all tensors for this dy, by name.
            hessian: Yield a situation for second derivatives also where a note would do.
        """
        real = _real(self.point)

        def gradients(*values: Any) -> Any:
            changed = dict(zip(real, values, strict=True))
            arrays = [changed.get(i, x) for i, x in enumerate(self._arrays(self.point))]
            outputs, vjp = self._vjp(arrays, real, self.settings)
            return vjp(_cotangent(dy, outputs))

        name, how = "under jit", "the same gradients"
        tolerance = max(JIT_TOLERANCE, 16 * self.epsilon)
        with _float64():
            try:
                found = jax.jit(gradients)(*(self._arrays(self.point)[i] for i in real))
            except Exception as raised:  # a rule may raise anything
                yield Situation(name, np.inf, how, 0.0, str(wrong_rule(raised)))
                return
        right = [grads[self.input_names[i]] for i in real]
        error = relative([np.asarray(g, np.float64) for g in found], right, smallest_size(dy, grads))
        why = "" if error <= tolerance else "the gradients differ in a compiled function"
        yield Situation(name, error, how, tolerance, why)


def wrong_rule(error: Exception) -> WrongBackward:
    """Return the sentence about a derivative rule that JAX cannot use."""
    text = _shortened(error)
    if isinstance(error, AssertionError):  # of JAX, which transposes the rule
        return WrongBackward("the derivative rule cannot be transposed: it must be linear in the directions")
    return WrongBackward(f"the derivative rule raised {type(error).__name__}: {text}")


def _real(inputs: Sequence[Any]) -> list[int]:
    """Return the places of the arrays of floats."""
    return [i for i, x in enumerate(inputs) if is_array(x) and x.dtype.kind == "f"]


def _residuals(vjp: Any) -> dict[str, Array]:
    """Return the arrays of floats that the forward pass keeps for the backward pass."""
    kept = [x for x in jax.tree_util.tree_leaves(vjp) if isinstance(x, jax.Array) and x.dtype == jnp.float64]
    return {f"residual {i}": np.asarray(x) for i, x in enumerate(kept)}


def _float64() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which JAX computes in float64, with the setting restored at its end."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # of versions before 0.8

    return enable_x64()


def _to_array(x: Any) -> Any:
    """Return an array as one of NumPy, in float64 if it holds floats, and other arguments as they are."""
    if not isinstance(x, jax.Array) and not is_array(x):
        return x
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise UserError("complex arrays are not supported: give real ones")
    return np.array(x, np.float64) if jnp.issubdtype(x.dtype, jnp.floating) else np.array(x)


def _to_numpy(outputs: Any) -> Any:
    """Return the outputs as NumPy arrays. NumPy has no bfloat16, so these become float32."""

    def convert(part: Any) -> Any:
        if not isinstance(part, (jax.Array, np.ndarray)):
            return part
        return np.asarray(part, np.float32 if part.dtype == jnp.bfloat16 else None)

    return map_tree(convert, outputs)


def _cotangent(dy: Any, outputs: Any) -> Any:
    """Return the gradient of the outputs in their data types, with JAX's own zeros for integers."""

    def convert(d: Any, y: Any) -> Any:
        if jnp.issubdtype(jnp.result_type(y), jnp.floating):
            return jnp.asarray(d, jnp.result_type(y))
        return np.zeros(np.shape(y), jax.dtypes.float0)

    return map_tree(convert, dy, outputs)


def _shortened(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}…"
