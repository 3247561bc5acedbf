"""The array class of the stand-in, `cupy.ndarray`."""

import operator

import numpy as np

from . import _creation, _functions, _indexing
from ._ufuncs import comparison, operators
from ._values import DeviceValue, device_array, download, host_argument, operand, run, wrap


def method(name):
    """Return a method that calls the function of that name with the array as its first argument."""
    function = _functions.FUNCTIONS[name]

    def call(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    call.__name__, call.__doc__ = name, f"As `cupy.{name}`."
    return call


def fact(name):
    """Return a property that is computed without the values."""
    return property(lambda self: getattr(self._array, name), doc=f"As in NumPy: {name}.")


class Conversions:
    """Every transfer from the device: refused if implicit, counted if explicit."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy's ufuncs and operators refuse device arrays or defer to the methods below
    __hash__ = None

    def __array__(self, *args, **kwargs):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"numpy.{function.__name__} on a device array: ask the array for its module")

    def get(self, stream=None, order="C"):
        """Return a NumPy copy."""
        return np.asarray(download(self), order=order)

    def item(self):
        """Return the only value as a Python scalar."""
        return self.get().item()

    def tolist(self):
        """Return nested lists of Python scalars."""
        return self.get().tolist()

    def __bool__(self):
        if self.size != 1:
            raise ValueError("The truth value of an array with other than one element is ambiguous")
        return bool(self.item())

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __complex__(self):
        return complex(self.get())

    def __repr__(self):
        return repr(self.get())

    def __str__(self):
        return str(self.get())

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return _creation.array, (self.get(),)


class Operators:
    """Python's operators, which accept only device arrays and scalars on either side."""

    __slots__ = ()
    __add__, __radd__, __iadd__ = operators(np.add)
    __sub__, __rsub__, __isub__ = operators(np.subtract)
    __mul__, __rmul__, __imul__ = operators(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = operators(np.true_divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = operators(np.floor_divide)
    __mod__, __rmod__, __imod__ = operators(np.remainder)
    __and__, __rand__, __iand__ = operators(np.bitwise_and)
    __or__, __ror__, __ior__ = operators(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = operators(np.bitwise_xor)
    __divmod__, __rdivmod__ = operators(np.divmod)[:2]
    __rpow__, __ipow__ = operators(np.power)[1:]
    __lt__, __le__ = comparison(np.less), comparison(np.less_equal)
    __gt__, __ge__ = comparison(np.greater), comparison(np.greater_equal)
    __eq__, __ne__ = comparison(np.equal), comparison(np.not_equal)
    __hash__ = None

    def __pow__(self, other):
        return run(operator.pow, self._array, operand(other))

    def __matmul__(self, other):
        return run(np.matmul, self._array, device_array(other))

    def __rmatmul__(self, other):
        return run(np.matmul, device_array(other), self._array)

    def __neg__(self):
        return run(np.negative, self._array)

    def __pos__(self):
        return run(np.positive, self._array)

    def __abs__(self):
        return run(np.absolute, self._array)

    def __invert__(self):
        return run(np.invert, self._array)


class ndarray(Conversions, Operators, DeviceValue):
    """An array on the simulated device. It is not a NumPy array and cannot be used as one."""

    __slots__ = ()
    __module__ = "cupy"
    shape, ndim, size, dtype = fact("shape"), fact("ndim"), fact("size"), fact("dtype")
    strides, itemsize, nbytes = fact("strides"), fact("itemsize"), fact("nbytes")
    flags = fact("flags")
    T = property(lambda self: wrap(self._array.T))

    sum, prod, mean, max, min = (method(name) for name in ("sum", "prod", "mean", "max", "min"))
    all, any, argmax, argmin, cumsum = (method(name) for name in ("all", "any", "argmax", "argmin", "cumsum"))
    take, repeat, dot, clip, ravel = (method(name) for name in ("take", "repeat", "dot", "clip", "ravel"))
    swapaxes, squeeze, nonzero = (method(name) for name in ("swapaxes", "squeeze", "nonzero"))
    astype = _functions.astype

    def __init__(self, shape, dtype=float, order="C"):
        self._array = _creation.empty(shape, dtype, order)._array

    @property
    def real(self):
        """Return a view of the real parts, or the array itself if it is not complex."""
        return wrap(self._array.real) if self.dtype.kind == "c" else self

    @property
    def imag(self):
        """Return a view of the imaginary parts, or new zeros if it is not complex."""
        return wrap(self._array.imag if self.dtype.kind == "c" else np.zeros_like(self._array))

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __getitem__(self, key):
        return _indexing.getitem(self._array, key)

    def __setitem__(self, key, value):
        _indexing.setitem(self._array, key, value)

    def reshape(self, *shape, order="C"):
        """Return a reshaped array, as in NumPy: a view where possible."""
        return wrap(self._array.reshape(*host_argument(shape), order=order))

    def transpose(self, *axes):
        """Return a view with its axes in another order."""
        return wrap(self._array.transpose(*host_argument(axes)))

    def copy(self, order="C"):
        """Return a copy on the device."""
        return wrap(self._array.copy(order))

    def conj(self):
        """Return the complex conjugates."""
        return run(np.conjugate, self._array)

    conjugate = conj
