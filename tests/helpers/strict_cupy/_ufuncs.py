"""CuPy's universal functions: NumPy's arithmetic with CuPy's fewer arguments."""

import numpy as np

from ._fuse import Traced, elementwise
from ._indexing import scatter_add
from ._values import device_array, operand, run

NAMES = """
    add subtract multiply divide true_divide floor_divide remainder power divmod negative positive absolute
    sqrt exp log log1p sin cos tanh maximum minimum isfinite isinf isnan
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not
    bitwise_and bitwise_or bitwise_xor bitwise_not invert conj
"""
KEYWORDS = {"out", "dtype", "casting"}  # no `where`, no `order`, no `subok`


class Ufunc:
    """A function of device arrays and scalars, with `out` a device array, that returns device arrays."""

    def __init__(self, numpy_ufunc, name=None):
        self._ufunc = numpy_ufunc
        self.__name__ = name or numpy_ufunc.__name__
        self.nin, self.nout = numpy_ufunc.nin, numpy_ufunc.nout

    def __call__(self, *args, **kwargs):
        if any(isinstance(arg, Traced) for arg in args):
            return elementwise(self._ufunc, args, kwargs)
        if wrong := sorted(set(kwargs) - KEYWORDS):
            raise TypeError(f"Wrong arguments {wrong}: cupy.{self.__name__} takes only {sorted(KEYWORDS)}")
        inputs = [operand(arg) for arg in args[: self.nin]]
        outputs = [_output(arg) for arg in args[self.nin :]]
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple(map(_output, out)) if isinstance(out, tuple) else _output(out)
        result = run(self._ufunc, *inputs, *outputs, **kwargs)
        target = args[self.nin] if outputs else out
        return target if target is not None and self.nout == 1 and not isinstance(target, tuple) else result

    def at(self, array, indices, values):
        """Accumulate into `array` in place, also at duplicate indices."""
        if self.__name__ != "add":
            raise NotImplementedError(f"`{self.__name__}.at` is not in the stand-in")
        scatter_add(array, indices, values)

    def __getattr__(self, name):
        raise AttributeError(f"the stand-in's ufunc has no {name!r}: it may be called, and some have .at")

    def __repr__(self):
        return f"<ufunc 'cupy_{self.__name__}'>"


def _output(value):
    return None if value is None else device_array(value)


def operators(ufunc):
    """Return the methods for `x op y`, `y op x` and `x op= y`."""
    call = Ufunc(ufunc)

    def forward(self, other):
        return call(self, other)

    def reflected(self, other):
        return call(other, self)

    def in_place(self, other):
        return call(self, other, out=self)

    return forward, reflected, in_place


def comparison(ufunc):
    """Return the method for `x op y` where Python finds the reflected operator by itself."""
    return operators(ufunc)[0]


UFUNCS = {name: Ufunc(getattr(np, name), name) for name in NAMES.split()}
