"""Checks of the arrays that layers receive. A wrong array raises a UserError that names its shape."""

from collections.abc import Mapping
from types import EllipsisType
from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.errors import UserError

# an axis in the expected shape: an int is its length, a letter allows any length, ... any number of axes
Axis = int | str | EllipsisType


def check_floats(x: Any, shape: tuple[Axis, ...], layer: str, name: str = "x") -> None:
    """Check that x is an array of floats with this shape.

    Args:
        x: The input.
        shape: Its axes, such as (..., 6) or ("B", "T", 6). A letter stands for any length.
        layer: The name of the layer, for the message.
        name: The name of the input, for the message.

    Raises:
        UserError: If x is not an array, has another dtype, or has another shape.
    """
    if (isinstance(x, np.ndarray) or is_array(x)) and x.dtype.kind in "fc" and _fits(x.shape, shape):
        return
    _check_array(x, layer, name)
    if x.dtype.kind not in "fc":
        raise UserError(
            f"{layer} takes floats and {name} has dtype {x.dtype}: convert it with {name}.astype(np.float32)"
        )
    _check_shape(x, shape, layer, name)


def check_gradient(dy: Any, shape: tuple[Axis, ...], layer: str) -> None:
    """Check that dy, the gradient of the output of a layer, is an array of floats with the output's shape.

    Args:
        dy: The gradient.
        shape: The axes of the output, as in check_floats.
        layer: The name of the layer, for the message.

    Raises:
        UserError: If dy is not an array, has another dtype, or has another shape.
    """
    if not (isinstance(dy, np.ndarray) and dy.shape == shape and dy.dtype.kind in "fc"):
        check_floats(dy, shape, f"{layer}.backward", "dy")


def check_token_ids(ids: Any, shape: tuple[Axis, ...], n: int, layer: str) -> None:
    """Check that ids is an array of integers in [0, n) with this shape.

    On a GPU the values are not checked, since reading them would wait for the GPU.

    Args:
        ids: The token ids.
        shape: Their axes, such as (...,) or ("B", "T").
        n: The number of rows of the table.
        layer: The name of the layer, for the message.

    Raises:
        UserError: If ids is not an array of integers, has another shape, or holds a value outside [0, n).
    """
    _check_array(ids, layer, "ids")
    if ids.dtype.kind not in "iu":
        raise UserError(
            f"{layer} takes integers and ids has dtype {ids.dtype}: convert it with ids.astype(int)"
        )
    _check_shape(ids, shape, layer, "ids")
    if isinstance(ids, np.ndarray) and ids.size and not 0 <= ids.min() <= ids.max() < n:
        raise UserError(
            f"{layer} has {n} rows and ids range from {ids.min()} to {ids.max()}: use ids from 0 to {n - 1}"
        )


def check_length(end: int, most: int, layer: str) -> None:
    """Check that the positions lie inside a table of positions.

    Args:
        end: The last position plus 1.
        most: The number of positions in the table.
        layer: The name of the layer, for the message.

    Raises:
        UserError: If end is larger than most.
    """
    if end > most:
        raise UserError(
            f"{layer} has {most} positions and {end} are needed: shorten the sentence, or make "
            "it with a larger max_length"
        )


def check_batches(layer: str, **arrays: Any) -> None:
    """Check that arrays (B, ...) have the same batch size. A batch size of 1 fits every other.

    Args:
        layer: The name of the layer, for the message.
        arrays: The arrays by name.

    Raises:
        UserError: If the batch sizes differ.
    """
    if len({len(array) for array in arrays.values()} - {1}) > 1:
        shapes = " and ".join(f"{name} of shape {array.shape}" for name, array in arrays.items())
        raise UserError(f"{layer} takes equal batch sizes and got {shapes}: make the first axes equal")


def _check_array(x: Any, layer: str, name: str) -> None:
    if not is_array(x):
        raise UserError(
            f"{layer} takes an array and {name} is a {type(x).__name__}: convert it with np.array({name})"
        )


def _check_shape(x: Any, shape: tuple[Axis, ...], layer: str, name: str) -> None:
    if not _fits(x.shape, shape):
        text = ", ".join("..." if axis is ... else str(axis) for axis in shape)
        raise UserError(f"{layer} takes {name} of shape ({text}) and got {x.shape}")


def _fits(found: tuple[int, ...], shape: tuple[Axis, ...]) -> bool:
    """Return True if the shape `found` has these axes. Every layer calls it, so it is written for speed."""
    if shape[0] is ...:
        return len(shape) == 1 or (len(found) > 0 and found[-1] == shape[-1])
    if len(found) != len(shape):
        return False
    for length, axis in zip(found, shape, strict=True):  # faster than all() over a generator
        if axis.__class__ is int and axis != length:
            return False
    return True


def check_state(parameters: Mapping[str, Any], state: Mapping[str, Array]) -> None:
    """Check that a saved state has the names and the shapes of the parameters of a model.

    Raises:
        UserError: If a name is missing or unknown, or if a shape differs.
    """
    for name in sorted(parameters.keys() ^ state.keys()):
        where = "missing from" if name in parameters else "not a parameter of this model but in"
        raise UserError(f"{name} is {where} the saved state: it was saved from another configuration")
    for name, parameter in parameters.items():
        if parameter.shape != state[name].shape:
            raise UserError(
                f"{name} has shape {state[name].shape} in the saved state and {parameter.shape} "
                "in this model: it was saved from another configuration"
            )
