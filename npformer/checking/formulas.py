"""Patterns of formulas: a gradient is a sum or a product of arrays that the backward pass computes."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from npformer.backend import Array
from npformer.checking.diagnosis_context import DiagnosisContext

FEWEST = 4  # entries of an array that is not a multiple of another by chance


def formula(context: DiagnosisContext) -> str:
    """Recognize the formula of the correct gradient, or of the term that is missing or too much."""
    if context.wrong.mean() < 0.5:
        return ""  # the pattern of single entries says more
    formulas = [item for item in _formulas(context) if item[1].any()]
    right = _find(context, context.right, formulas)
    if right:
        found = _find(context, context.found, formulas)
        return f"it is {found}, and {right} is correct" if found else f"{right} is correct"
    missing = _find(context, -context.difference, formulas)
    if missing:
        return f"the term {missing} is missing"
    extra = _find(context, context.difference, formulas)
    if extra:
        return f"the term {extra} must not be there"
    missing = _find_multiple(context, -context.difference, formulas)
    return f"the term {missing} is missing" if missing else ""


def _find(context: DiagnosisContext, wanted: Array, formulas: list[tuple[str, Array]]) -> str:
    for text, value in formulas:
        for sign, array in (("", value), ("-", -value)):
            if context.same(wanted, array):
                return sign + text
    return ""


def _find_multiple(context: DiagnosisContext, wanted: Array, formulas: list[tuple[str, Array]]) -> str:
    """Return the first formula of which the wanted array is a multiple."""
    if wanted.size < FEWEST:
        return ""
    for text, value in formulas:
        c = float((wanted * value).sum() / (value * value).sum())
        if context.same(wanted, c * value):
            return f"{c:.4g} · {text}"
    return ""


def _formulas(context: DiagnosisContext) -> Iterator[tuple[str, Array]]:
    """Yield pairs (text, array of the shape of the gradient), the short formulas first."""
    shape, operands = context.right.shape, context.operands
    for name, a in operands.items():
        if a.shape == shape:
            yield name, a
        for rows in _rows(a, shape):
            yield f"the sum of {name} over the positions", rows.sum(0).reshape(shape)
    for (name, a), (other, b) in product(operands.items(), repeat=2):
        if name <= other and _broadcast(a, b) is not None:
            both = a * b
            if both.shape == shape:
                yield f"{name} · {other}", both
            for rows in _rows(both, shape):
                yield f"the sum of {name} · {other} over the positions", rows.sum(0).reshape(shape)
        yield from _matrix_products(name, a, other, b, shape)


def _rows(a: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield a as rows that each have the size of the gradient, if it has more axes."""
    if a.ndim > len(shape) and a.shape[a.ndim - len(shape) :] == shape:
        yield a.reshape(-1, int(np.prod(shape)))


def _matrix_products(
    name: str, a: Array, other: str, b: Array, shape: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield the matrix products of two arrays that have the shape of the gradient."""
    if a.ndim < 2 or b.ndim < 2:
        return
    if shape == (a.shape[-1], b.shape[-1]) and a.shape[:-1] == b.shape[:-1]:
        yield f"{name}ᵀ {other}", a.reshape(-1, shape[0]).T @ b.reshape(-1, shape[1])
    if b.ndim == 2 and a.shape[-1] == b.shape[0] and shape == (*a.shape[:-1], b.shape[1]):
        yield f"{name} {other}", a @ b
    if b.ndim == 2 and a.shape[-1] == b.shape[1] and shape == (*a.shape[:-1], b.shape[0]):
        yield f"{name} {other}ᵀ", a @ b.T
    if a.ndim == b.ndim > 2 and a.shape[:-2] == b.shape[:-2] == shape[:-2]:  # a product for each sequence
        for (left, first), (right, second) in product(_with_transpose(name, a), _with_transpose(other, b)):
            if (first.shape[-2], second.shape[-1]) == shape[-2:] and first.shape[-1] == second.shape[-2]:
                yield f"{left} {right}", first @ second


def _with_transpose(name: str, a: Array) -> list[tuple[str, Array]]:
    return [(name, a), (f"{name}ᵀ", a.swapaxes(-1, -2))]


def _broadcast(a: Array, b: Array) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None
