"""Half precision: sums of float16 numbers are added in float32, and only the result is rounded to float16.

float16 holds whole numbers up to 2,048 exactly and no number above 65,504, so a sum over a row overflows
early. The products of forward passes, such as x @ weight, are left as NumPy computes them.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def sums_in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate one function of a pair: where an argument is float16, compute in float32.

    The output, or the gradients, are rounded to float16; a result of bools stays as it is. The cache of such
    a call holds float32 arrays.
    """
    is_backward = function.__name__.endswith("_backward")
    compute: Any = function  # of float32 arrays

    @wraps(function)
    def called(*args: P.args, **settings: P.kwargs) -> R:
        if not any(map(_is_half, args)):
            return function(*args, **settings)
        result: Any = compute(*map(_widened, args), **settings)
        if not isinstance(result, tuple):
            result = _rounded(result)
        elif is_backward:
            result = tuple(map(_rounded, result))
        else:
            result = _rounded(result[0]), result[1]
        rounded: R = result
        return rounded

    return called


def _is_half(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)  # an array of NumPy or of CuPy has one
    return getattr(dtype, "char", None) == "e"  # much faster than a comparison with the name


def _widened(arg: Any) -> Any:
    return arg.astype("float32") if _is_half(arg) else arg


def _rounded(part: Any) -> Any:
    return part.astype("float16") if getattr(part, "dtype", None) == "float32" else part
