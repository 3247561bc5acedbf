"""`cupy.fuse`, as strict as the first of CuPy's two compilers for it, which makes the fast kernels.

A function that the first compiler refuses is silently compiled by CuPy's second one, whose kernels start no
more blocks than one multiprocessor holds (cupy/_core/_fusion_kernel.pyx, `execute`). Here it is an error. Two
things that the first compiler computes differently from NumPy are errors as well: an operation on plain
numbers only, whose result becomes float64, and a result smaller than the broadcast shape of all arguments,
which gets that shape.
"""

import operator

import numpy as np

from ._values import PYTHON_SCALARS, DeviceValue, unsupported, wrap

REDUCTIONS = ("sum", "prod", "max", "min", "amax", "amin", "all", "any")


class FusionError(TypeError):
    """The error for functions that the real CuPy would refuse, run slowly or compute differently."""


class Trace:
    """One run of a fused function: the broadcast shape of its arguments, and whether it has summed yet."""

    def __init__(self, arrays):
        self.shape = np.broadcast_shapes(*(array.shape for array in arrays))
        self.reduced, self.written = False, False
        self.dtypes = {array.dtype for array in arrays}

    def traced(self, value):
        """Return a result; float64 among float32 is refused, because a GPU is much slower in float64."""
        single = np.dtype(np.float32) in self.dtypes and np.dtype(np.float64) not in self.dtypes
        if single and value.dtype == np.float64:
            raise FusionError("float64 creeps in: a choice between two numbers, or integers over integers")
        return Traced(self, value)


class Traced:
    """A value inside a fused function, which supports arithmetic and nothing else."""

    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, trace, value):
        self.trace, self.value, self.reduced = trace, value, trace.reduced

    dtype = property(lambda self: np.asarray(self.value).dtype)
    ndim = property(lambda self: np.ndim(self.value))
    is_array = property(lambda self: isinstance(self.value, np.ndarray))

    def __bool__(self):
        raise FusionError("Cannot convert to Python scalar in cupy.fuse: no branch may depend on a value")

    __int__ = __float__ = __complex__ = __index__ = __len__ = __iter__ = __bool__

    def __getattr__(self, name):
        raise FusionError(f"no .{name} inside a fused function: use the module's function, if it has one")

    def __getitem__(self, key):
        raise FusionError("no indexing inside a fused function")

    def __setitem__(self, key, value):
        if key is not Ellipsis and key != slice(None):
            raise FusionError("fusion supports x[...] = and x[:] = only")
        write(self, np.positive(value) if type(value) in PYTHON_SCALARS else value)

    def astype(self, dtype):
        """Convert each entry to another dtype."""
        return elementwise(lambda value: np.asarray(value).astype(dtype), (self,), {})


def elementwise(function, args, kwargs):
    """Apply an elementwise function to traced arrays, given numbers and constants."""
    if kwargs:
        raise FusionError(f"no {sorted(kwargs)} inside a fused function")
    trace = next(arg.trace for arg in args if isinstance(arg, Traced))
    if not any(isinstance(arg, Traced) and arg.is_array for arg in args):
        raise FusionError("numbers alone: CuPy would make float64 of them; put them together outside")
    with np.errstate(all="ignore"):
        return trace.traced(np.asarray(function(*(_value(trace, arg) for arg in args))))


def _value(trace, arg):
    if isinstance(arg, Traced):
        if arg.trace is not trace:
            raise FusionError("a value of another run of a fused function")
        if arg.reduced != trace.reduced:
            raise FusionError("after a sum or maximum, nothing may be used but its result and constants")
        return arg.value
    if type(arg) not in PYTHON_SCALARS:
        raise FusionError(f"{type(arg)} inside a fused function: give it as an argument")
    return arg


def reduction(function, name, args, kwargs):
    """Sum, or reduce in another way, over an axis of an array that has the full shape."""
    if name not in REDUCTIONS or len(args) != 1 or set(kwargs) - {"axis"}:
        raise FusionError(f"cupy.{name}({len(args)} values, {sorted(kwargs)}) inside a fused function")
    (arg,) = args
    trace = arg.trace
    value = _value(trace, arg)
    if trace.written:
        raise FusionError("a sum or maximum after writing into an argument")
    if np.shape(value) != trace.shape:
        raise FusionError(f"one sum or maximum, of {trace.shape}, is all; not of {np.shape(value)}")
    trace.reduced = True
    return trace.traced(np.asarray(function(value, **kwargs)))


def write(target, value):
    """Write into an array that has the full shape."""
    if not target.is_array or target.value.shape != target.trace.shape or target.trace.reduced:
        raise FusionError("only what has the shape of all arguments together may be written into")
    if isinstance(value, Traced):
        value = _value(target.trace, value)
    np.copyto(target.value, value, casting="same_kind")
    target.trace.written = True
    return target


def _operator(name):
    function = getattr(operator, name)

    def forward(self, other):
        return elementwise(function, (self, other), {})

    def reflected(self, other):
        return elementwise(function, (other, self), {})

    def in_place(self, other):
        return write(self, elementwise(function, (self, other), {}))

    return forward, reflected, in_place


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor"):
    _dunder = _name.rstrip("_")
    for _prefix, _method in zip(("", "r", "i"), _operator(_name), strict=True):
        setattr(Traced, f"__{_prefix}{_dunder}__", _method)
for _name in ("pow", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Traced, f"__{_name}__", _operator(_name)[0])
Traced.__neg__ = lambda self: elementwise(operator.neg, (self,), {})
Traced.__invert__ = lambda self: elementwise(operator.invert, (self,), {})


def fuse(*args, **kwargs):
    """Implement `@fuse`, `@fuse()` and `@fuse(kernel_name=...)`."""

    def decorate(function):
        def fused(*inputs):
            return _run(function, inputs)

        fused.__doc__ = function.__doc__
        return fused

    if args and callable(args[0]):
        return decorate(args[0])
    if unknown := set(kwargs) - {"kernel_name"}:
        raise unsupported(unknown)
    return decorate


def _run(function, inputs):
    for value in inputs:
        if not (value is None or isinstance(value, DeviceValue) or type(value) in PYTHON_SCALARS):
            raise unsupported(value)
    arrays = [value._array for value in inputs if isinstance(value, DeviceValue)]
    trace = Trace(arrays)
    result = function(*(value if value is None else Traced(trace, _inside(value)) for value in inputs))
    if any(a is not b and np.shares_memory(a, b) for a in arrays for b in arrays) and trace.written:
        raise FusionError("writing into one of two arguments that share memory")
    if isinstance(result, tuple):
        return tuple(_result(trace, one) for one in result)
    return None if result is None else _result(trace, result)


def _inside(value):
    return value._array if isinstance(value, DeviceValue) else value


def _result(trace, result):
    if not isinstance(result, Traced) or not result.is_array:
        raise FusionError(f"a fused function gives None, an array or several, not {result!r}")
    value = _value(trace, result)
    if not trace.reduced and value.shape != trace.shape:
        raise FusionError(f"a result of shape {value.shape}: CuPy would give it the shape {trace.shape}")
    return wrap(value.copy())
