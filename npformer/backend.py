"""The choice between NumPy and CuPy. No other file imports CuPy.

There is no global setting. Every function uses the module of its arguments. So a model computes on the device
of its arrays, and two models in one program can use different devices.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import Any, TypeAlias

import numpy as np

from npformer.errors import UserError

# the types in signatures. Arrays and generators of CuPy are allowed where these types are written
Array: TypeAlias = np.ndarray[Any, Any]
Generator: TypeAlias = np.random.Generator

BACKENDS = ("numpy", "cupy")


def array_module(*arrays: Any) -> Any:
    """Return the module to which these arrays belong, numpy or cupy."""
    for array in arrays:
        if type(array) is not np.ndarray and is_cupy(array):
            return _import_cupy()
    return np


def is_cupy(value: object) -> bool:
    """Return whether a value is an array of CuPy.

    Only the name of its type is compared, so the function also works if CuPy is not installed.
    """
    kind = type(value)
    return kind.__name__ == "ndarray" and kind.__module__.partition(".")[0] == "cupy"


def is_array(value: object) -> bool:
    """Return whether a value is an array of NumPy or CuPy."""
    return isinstance(value, np.ndarray) or is_cupy(value)


def is_torch(value: object) -> bool:
    """Return whether a value is a tensor of PyTorch, such as a Parameter.

    Only the names of its type and of the types above it are compared, so the function also works if PyTorch
    is not installed.
    """
    kinds = type(value).__mro__
    return any(kind.__name__ == "Tensor" and kind.__module__ == "torch" for kind in kinds)


def to_numpy(array: Any) -> Array:
    """Return an array, or a tensor of PyTorch, as a NumPy array. It is copied to the host if necessary."""
    if is_torch(array):
        return _from_torch(array)
    return array.get() if is_cupy(array) else np.asarray(array)


def _from_torch(tensor: Any) -> Array:
    """Return a tensor of any device and dtype, whether it requires gradients or not, as a NumPy array."""
    tensor = tensor.detach().cpu()
    if str(tensor.dtype).startswith(("torch.bfloat16", "torch.float8")):
        tensor = tensor.float()  # NumPy has no such types, and float32 holds each of their numbers exactly
    numbers: Array = tensor.numpy()
    return numbers


def to_backend(array: Any, backend: str) -> Array:
    """Return the array as an array of the backend "numpy" or "cupy"."""
    if backend == "numpy":
        return to_numpy(array)
    return array if is_cupy(array) else _import_cupy().asarray(array)


def like(array: Any, reference: Array) -> Array:
    """Move an array to the device of the reference."""
    if type(array) is type(reference):
        return array
    return to_backend(array, "cupy" if is_cupy(reference) else "numpy")


def choose_backend(name: str) -> str:
    """Return the backend to use: "auto" becomes "cupy" if there is a working GPU, and "numpy" otherwise.

    Raises:
        UserError: If there is no such backend, or if the name is "cupy" and no GPU answers.
    """
    if name not in (*BACKENDS, "auto"):
        raise UserError(f"unknown backend {name!r}: choose one of numpy, cupy, auto")
    if name == "numpy":
        return name
    problem = _gpu_problem()
    if problem and name == "cupy":
        raise UserError(
            f"backend cupy needs CuPy and a GPU that answers, and {problem}: "
            "install npformer[cupy] on a machine with a GPU, or use --backend numpy"
        )
    return "numpy" if problem else "cupy"


def random_uniform(rng: Generator, shape: tuple[int, ...], reference: Array) -> Array:
    """Draw uniform numbers in [0, 1), float32, on the device of the reference.

    A NumPy generator draws on the host, so the numbers are the same on a CPU and on a GPU. A CuPy generator
    draws on the GPU.

    Args:
        rng: The generator.
        shape: The shape of the result.
        reference: An array on the device where the result is needed.
    """
    return like(rng.random(shape, dtype=np.float32), reference)


def random_keep_mask(rng: Any, shape: tuple[int, ...], p: float, reference: Array) -> Array:
    """Draw a bool array that is True with probability 1 - p, on the device of the reference.

    A NumPy generator draws 16 random bits for each entry on the host. This is three times as fast as a
    uniform number for each entry. The probability is rounded to a multiple of 1 / 65,536.

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
    """Return a generator that draws on the device of the reference.

    It is `rng` itself on the host. On a GPU it is a new generator, so that no random numbers are copied. The
    seed of the new generator is drawn from rng, so the same rng leads to the same numbers. It is a Philox
    generator, because every batch needs a new one and this kind is created quickly.
    """
    if rng is None or not is_cupy(reference):
        return rng
    random = _import_cupy().random
    return random.Generator(random.Philox4x3210(int(rng.integers(1 << 32))))


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate function(xp, *arrays and numbers): on a GPU it becomes one kernel, compiled at its first call.

    Without fusion, xp.exp(x * scale) is computed by two kernels. The first one writes the product to memory,
    and the second one reads it. CuPy has two compilers for fusion. If the first one rejects a function, CuPy
    uses the second one without a warning, whose kernels use only a fraction of the GPU. So fused functions
    must follow the rules of the first compiler:

    - They work entry by entry, and every result has the shape to which all arguments together broadcast.
    - xp.sum or xp.max over an axis may occur once. After it, only its result and constants are used.
    - Two numbers are never combined without an array, since CuPy would convert them to float64.
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


def erf(x: Array, xp: Any = None) -> Array:
    """Compute the error function of a real array, entry by entry. NumPy has no such function.

    Args:
        x: The array.
        xp: The array module, which a fused function knows. The default is that of x.
    """
    if (xp or array_module(x)) is not np:
        from cupyx.scipy import special

        return special.erf(x)
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _import_cupy() -> Any:
    import cupy

    return cupy


def _gpu_problem() -> str:
    """Return the reason why CuPy does not work, as a part of an error message, or "" if it works."""
    try:
        cupy = _import_cupy()
        return "" if cupy.cuda.runtime.getDeviceCount() > 0 else "no GPU was found"
    except ImportError:
        return "the package cupy is not installed"
    except Exception as error:  # CuPy raises errors of its own kinds where the driver is missing
        return f"the GPU does not answer ({error})"
