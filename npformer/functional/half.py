"""Half precision: sums of float16 numbers are added in float32, and only the result is rounded to float16.

float16 holds whole numbers up to 2,048 exactly and no number above 65,504, so a sum over a row overflows
early. Matrix products are left as NumPy computes them.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from npformer.backend import is_array

F = TypeVar("F", bound=Callable[..., Any])


def sums_in_float32(function: F) -> F:
    """Decorate one function of a pair: where an argument is float16, compute in float32.

    The output, or the gradients, are rounded to float16. The cache of such a call holds float32 arrays.
    """
    is_backward = function.__name__.endswith("_backward")

    @wraps(function)
    def called(*args: Any, **settings: Any) -> Any:
        if not any(_is_half(arg) for arg in args):
            return function(*args, **settings)
        result = function(*(arg.astype("float32") if _is_half(arg) else arg for arg in args), **settings)
        if not isinstance(result, tuple):
            return _rounded(result)
        return tuple(map(_rounded, result)) if is_backward else (_rounded(result[0]), result[1])

    return called  # type: ignore[return-value]


def _is_half(value: Any) -> bool:
    return is_array(value) and value.dtype == "float16"


def _rounded(part: Any) -> Any:
    return None if part is None else part.astype("float16")
