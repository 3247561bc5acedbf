"""Which module an array belongs to, and how arrays move. The only file that imports CuPy.

There is no global switch: every function asks the arrays that it is given. So a model computes where
its arrays lie, and two models can live on two devices in one program.
"""

import math
from functools import lru_cache, partial, wraps

import numpy as np

from npformer.errors import UserError

BACKENDS = ("numpy", "cupy")


def array_module(*arrays):
    """The module, numpy or cupy, whose functions take these arrays."""
    if any(is_cupy(array) for array in arrays):
        return _import_cupy()
    return np


def is_cupy(thing):
    """Whether this is an array on the GPU. The type's own name tells, so CuPy need not be installed."""
    kind = type(thing)
    return kind.__name__ == "ndarray" and kind.__module__.partition(".")[0] == "cupy"


def is_array(thing):
    """Whether this is an array of either module."""
    return isinstance(thing, np.ndarray) or is_cupy(thing)


def to_numpy(array):
    """The same numbers in the host's memory."""
    return array.get() if is_cupy(array) else np.asarray(array)


def to_backend(array, backend):
    """The same numbers in the memory of "numpy" or "cupy"."""
    if backend == "numpy":
        return to_numpy(array)
    return array if is_cupy(array) else _import_cupy().asarray(array)


def like(array, reference):
    """The array moved to where the reference lies."""
    return to_backend(array, "cupy" if is_cupy(reference) else "numpy")


def choose_backend(name):
    """Turn "numpy", "cupy" or "auto" into the backend to use.

    Errors: UserError for another name, and for "cupy" where no GPU answers.
    """
    if name not in (*BACKENDS, "auto"):
        raise UserError(f"unknown backend {name!r}: choose one of numpy, cupy, auto")
    if name == "numpy":
        return name
    missing = _why_no_gpu()
    if missing and name == "cupy":
        raise UserError(
            f"backend cupy needs CuPy and a GPU that answers, and {missing}: "
            "install npformer[cupy] on a machine with a GPU, or use --backend numpy"
        )
    return "numpy" if missing else "cupy"


def random_uniform(rng, shape, reference):
    """Uniform numbers in [0, 1), float32, where the reference lies.

    A NumPy generator draws on the host, so that CPU and GPU see the same numbers; a CuPy generator
    draws on the GPU.
    """
    return like(rng.random(shape, dtype=np.float32), reference)


def random_kept(rng, shape, rate, reference):
    """True at a share 1 - rate of the entries, drawn where the reference lies. Shapes: -> shape, bool.

    A NumPy generator draws on the host, 16 bits an entry: three times as fast as a uniform number each, and
    as good, a share being met to 1 / 65,536.
    """
    if not isinstance(rng, np.random.Generator):
        return rng.random(shape, dtype=np.float32) >= rate
    size = math.prod(shape)
    words = rng.integers(0, 1 << 64, -(-size // 4), dtype=np.uint64).view(np.uint16)[:size]
    return like(words.reshape(shape) >= round(rate * 65536), reference)


def generator_near(rng, reference):
    """A generator that draws where the reference lies: on the host this one; on the GPU one that it seeds.

    So no random number crosses over, and the same seed still gives the same numbers. Philox is the kind
    whose start costs next to nothing: every batch may have a generator of its own.
    """
    if rng is None or not is_cupy(reference):
        return rng
    random = _import_cupy().random
    return random.Generator(random.Philox4x3210(int(rng.integers(1 << 32))))


def fused(function):
    """Turn function(xp, arrays and numbers) into one kernel of the GPU, compiled when it first gets arrays.

    Unfused, xp.exp(x * scale) is two kernels, and the product goes to memory and back. CuPy fuses by two
    compilers, and what the first refuses goes, without a word, to the second, whose kernels start no more
    threads than one of a GPU's hundred processors holds. So fused functions keep to rules of the first:
    - element by element, and every result has the shape that all arguments together broadcast to;
    - xp.sum or xp.max over an axis may come once; from then on only its result and constants are used;
    - two numbers never meet without an array, for CuPy would make float64 of them;
    - a branch may depend on what an argument is, such as None, but not on its value.
    """

    @lru_cache
    def kernel(cupy):
        return cupy.fuse(kernel_name=function.__name__)(partial(function, cupy))

    @wraps(function)
    def call(*args):
        xp = array_module(*args)
        return function(np, *args) if xp is np else kernel(xp)(*args)

    return call


def erf(x):
    """The error function of a real array, element by element; NumPy has none of its own."""
    if is_cupy(x):
        from cupyx.scipy import special

        return special.erf(x)
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _import_cupy():
    import cupy

    return cupy


def _why_no_gpu():
    """What is missing for CuPy to work, as the end of a sentence; an empty string if nothing is."""
    try:
        cupy = _import_cupy()
        return "" if cupy.cuda.runtime.getDeviceCount() > 0 else "no GPU was found"
    except ImportError:
        return "the package cupy is not installed"
    except Exception as error:  # CuPy raises errors of its own kinds where the driver is missing
        return f"the GPU does not answer ({error})"
