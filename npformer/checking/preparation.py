"""Prepare a check: forward passes that repeat, outputs in float64 that are finite, and a second point."""

from typing import Any

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import CheckTarget
from npformer.checking.surroundings import Generators
from npformer.checking.trees import copy_tree, is_real, leaves
from npformer.errors import UserError


def make_deterministic(target: CheckTarget, thing: Any, rng: Generator) -> str:
    """Restore all random generators before each forward pass if forward uses them.

    Args:
        target: The forward pass.
        thing: The layer or the pair, which may hold generators.
        rng: The generator of their states.

    Returns:
        A note for the report, or "" if forward uses no random numbers.

    Raises:
        UserError: If two forward passes differ and no generator explains it.
    """
    generators = Generators(thing)
    if _repeats(target) and not generators.have_moved():
        return ""
    target.generators = generators
    generators.draw_states(rng)
    if not _repeats(target):
        raise UserError(
            "two forward passes with the same input differ, and no random generator explains it: "
            "give rng=... if forward takes it, or let forward depend on its inputs and parameters alone"
        )
    return (
        "two forward passes with the same input differ: the random generators are restored before each pass "
        "(give rng=... if forward takes it)"
    )


def _repeats(target: CheckTarget) -> bool:
    outputs = [copy_tree(_first_output(target)), copy_tree(target.run()[0])]
    return all(np.array_equal(a, b, equal_nan=is_real(a)) for a, b in zip(*map(leaves, outputs), strict=True))


def _first_output(target: CheckTarget) -> Any:
    """Return the output, and say so if forward refuses float64 or returns something else than real arrays.

    Raises:
        UserError: If forward raises an error for float64 and none for float32, or if its output is complex,
            a text or empty.
    """
    try:
        y, _ = target.run()
    except Exception as error:
        if not target.given_float32 or not _takes_float32(target):
            raise
        raise UserError(
            f"forward takes float32 and refuses float64 ({type(error).__name__}: {error}): let it take "
            "float64, in which a check is exact to eleven digits"
        ) from error
    if any(isinstance(part, str | bytes) for part in leaves(y)):
        raise UserError("forward returned a text as its output: return an array")
    if not any(np.size(part) for part in leaves(y)):
        raise UserError("the output of forward has no entries: give inputs without an axis of length 0")
    if any(np.iscomplexobj(part) for part in leaves(y)):
        target.refuse_complex_inputs()
        raise UserError(
            "forward returns complex numbers for real ones: return real arrays, such as the real and the "
            "imaginary part as two outputs"
        )
    return y


def _takes_float32(target: CheckTarget) -> bool:
    try:
        target.run({name: value.astype(np.float32) for name, value in target.tensors.items()})
    except Exception:  # then the error is not one of the data type
        return False
    return True


def low_precision(y: Any) -> str:
    """Return a sentence if the output y for float64 has fewer digits, or ""."""
    parts = [np.asarray(part).dtype for part in leaves(y) if is_real(part)]
    low = [dtype for dtype in parts if dtype.itemsize < 8]
    return f"forward returns {low[0]} for float64: a part of it is computed in {low[0]}" if low else ""


def choose_point(target: CheckTarget) -> Any:
    """Leave the parameters at their own values if forward is not finite at random ones.

    Returns:
        The output at the point that was chosen.

    Raises:
        UserError: If the output is not finite at either point.
    """
    y, _ = target.run()
    if not _is_finite(y):
        target.tensors = target.tensors | target.given
        y, _ = target.run()
        if not _is_finite(y):
            raise UserError("the output of forward contains NaN or infinity: give other inputs")
    return y


def _is_finite(y: Any) -> bool:
    return all(np.isfinite(part).all() for part in leaves(y) if is_real(part))


def second_point(target: CheckTarget, rng: Generator, *, off_kinks: bool) -> dict[str, Array]:
    """Return another point near the first: mistakes may cancel at equal, symmetric or zero values.

    Args:
        target: The forward pass, at the first point.
        rng: The generator of the point.
        off_kinks: Move entries that are 0 as well, and equal ones apart, since forward may have kinks there.
    """
    away = 1e-2 if off_kinks else 0.0
    second = {
        name: value * rng.uniform(0.8, 1.2, value.shape)
        + away * target.scales[name] * rng.standard_normal(value.shape)
        for name, value in target.tensors.items()
    }
    with target.moved_to(second):
        try:
            possible = _is_finite(target.run()[0])
        except Exception:  # forward may refuse other inputs, as a Cholesky decomposition does
            possible = False
    return second if possible else target.tensors
