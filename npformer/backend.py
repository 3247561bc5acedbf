"""The choice between NumPy and CuPy. No other file imports CuPy.

There is no global setting: every function uses the module of its arguments. So a model computes on the device
of its arrays, and two models in one program can use two devices.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any, TypeAlias

import numpy as np

from npformer.errors import UserError

# the types in signatures; arrays and generators of CuPy are allowed too
Array: TypeAlias = np.ndarray[Any, Any]
Generator: TypeAlias = np.random.Generator

BACKENDS = ("numpy", "cupy")


def array_module(*arrays: Any) -> Any:
    """Return the module, numpy or cupy, whose functions take these arrays."""
    if any(is_cupy(array) for array in arrays):
        return _import_cupy()
    return np


def is_cupy(thing: object) -> bool:
    """Return whether this is an array on the GPU.

    The name of its type decides, so CuPy need not be installed.
    """
    kind = type(thing)
    return kind.__name__ == "ndarray" and kind.__module__.partition(".")[0] == "cupy"


def is_array(thing: object) -> bool:
    """Return whether this is an array of NumPy or CuPy."""
    return isinstance(thing, np.ndarray) or is_cupy(thing)


def to_numpy(array: Any) -> Array:
    """Return the array as a NumPy array in the memory of the host."""
    return array.get() if is_cupy(array) else np.asarray(array)


def to_backend(array: Any, backend: str) -> Array:
    """Return the array as an array of "numpy" or "cupy"."""
    if backend == "numpy":
        return to_numpy(array)
    return array if is_cupy(array) else _import_cupy().asarray(array)


def like(array: Any, reference: Array) -> Array:
    """Move an array to the device of the reference."""
    return to_backend(array, "cupy" if is_cupy(reference) else "numpy")


def choose_backend(name: str) -> str:
    """Turn "numpy", "cupy" or "auto" into the backend to use.

    Raises:
        UserError: If there is no such backend, or if "cupy" is asked for and no GPU answers.
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


def random_uniform(rng: Generator, shape: tuple[int, ...], reference: Array) -> Array:
    """Draw uniform numbers in [0, 1), float32, on the device of the reference.

    A NumPy generator draws on the host, so CPU and GPU get the same numbers. A CuPy generator draws on the
    GPU.

    Args:
        rng: The generator.
        shape: The shape of the result.
        reference: An array on the device where the result is needed.
    """
    return like(rng.random(shape, dtype=np.float32), reference)


def random_keep_mask(rng: Any, shape: tuple[int, ...], p: float, reference: Array) -> Array:
    """Draw a bool array that is True with probability 1 - p, on the device of the reference.

    A NumPy generator draws 16 bits for each entry on the host. This is three times as fast as a uniform
    number for each entry, and the probability is exact to 1 / 65,536.

    Args:
        rng: The generator.
        shape: The shape of the result.
        p: The dropout probability.
        reference: An array on the device where the result is needed.

    Returns:
        Bool, of this shape. False at dropped entries.
    """
    if not isinstance(rng, np.random.Generator):
        return rng.random(shape, dtype=np.float32) >= p
    size = math.prod(shape)
    bits = rng.integers(0, 1 << 64, -(-size // 4), dtype=np.uint64).view(np.uint16)[:size]
    return like(bits.reshape(shape) >= round(p * 65536), reference)


def generator_near(rng: Generator | None, reference: Array) -> Generator | None:
    """Return a generator that draws on the device of the reference: rng on the host, a new one on a GPU.

    The new generator is seeded by rng, so no random numbers are copied to the GPU, and the same seed
    gives the same numbers. It is a Philox generator, which starts fast enough for a new generator in every
    batch.
    """
    if rng is None or not is_cupy(reference):
        return rng
    random = _import_cupy().random
    return random.Generator(random.Philox4x3210(int(rng.integers(1 << 32))))


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn function(xp, *arrays and numbers) into one GPU kernel, which is compiled at its first call.

    Without fusion, xp.exp(x * scale) is two kernels, and the product is written to memory and read again.
    CuPy has two compilers for fusion. If the first one rejects a function, CuPy silently uses the second one,
    whose kernels use only a fraction of the GPU. So fused functions follow the rules of the first compiler:

    - They work entry by entry, and every result has the shape to which all arguments together broadcast.
    - xp.sum or xp.max over an axis may occur once. After it, only its result and constants are used.
    - Two numbers are never combined without an array, since CuPy would make float64 of them.
    - A branch may depend on the type of an argument, such as None, but not on its value.
    """

    @lru_cache
    def kernel(cupy: Any) -> Any:
        return cupy.fuse(kernel_name=function.__name__)(partial(function, cupy))

    @wraps(function)
    def call(*args: Any) -> Any:
        xp = array_module(*args)
        return function(np, *args) if xp is np else kernel(xp)(*args)

    return call


def erf(x: Array) -> Array:
    """Compute the error function of a real array, entry by entry. NumPy has no such function."""
    if is_cupy(x):
        from cupyx.scipy import special

        return special.erf(x)
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _import_cupy() -> Any:
    import cupy

    return cupy


def _why_no_gpu() -> str:
    """Return why CuPy does not work, as the end of a sentence, or "" if it works."""
    try:
        cupy = _import_cupy()
        return "" if cupy.cuda.runtime.getDeviceCount() > 0 else "no GPU was found"
    except ImportError:
        return "the package cupy is not installed"
    except Exception as error:  # CuPy raises errors of its own kinds where the driver is missing
        return f"the GPU does not answer ({error})"
