"""Construction of the modules, and their installation for `import cupy`."""

import importlib.machinery
import sys
import types
import warnings
from contextlib import contextmanager

import numpy as np

from . import _cuda
from ._creation import CREATION
from ._functions import FUNCTIONS, erf
from ._indexing import seed_races
from ._ndarray import ndarray
from ._transfers import transfers
from ._ufuncs import UFUNCS

NUMPY_OWN = """
    e inf nan newaxis pi
    bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp uintp intc float16 float32 float64
    complex64 complex128 generic number integer signedinteger unsignedinteger inexact floating complexfloating
    dtype finfo iinfo issubdtype promote_types broadcast_shapes ndindex s_ index_exp isscalar iterable
"""
CUDA_SOURCE = ("ElementwiseKernel", "ReductionKernel", "RawKernel", "RawModule")


class StandIn(types.ModuleType):
    """A module whose missing names raise an error that says so."""

    def __init__(self, name, **contents):
        super().__init__(name, "Part of a strict stand-in for CuPy.")
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        self.__path__ = []
        self.__dict__.update(contents)

    def __getattr__(self, name):
        why = "the stand-in does not know it; add it if the real CuPy has it"
        if name in CUDA_SOURCE:
            why = "the real CuPy has it, but CUDA source cannot run in the stand-in"
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} ({why})")


def build():
    """Return the modules of the stand-in by name."""
    runtime = StandIn("cupy.cuda.runtime", getDeviceCount=lambda: 1)
    cuda = StandIn("cupy.cuda", runtime=runtime, Device=_cuda.Device)
    names = ("default_rng", "Generator", "Philox4x3210")
    random = StandIn("cupy.random", **{name: getattr(_cuda, name) for name in names})
    cupy = StandIn(
        "cupy",
        **{name: getattr(np, name) for name in NUMPY_OWN.split()},
        **UFUNCS,
        **FUNCTIONS,
        **CREATION,
        ndarray=ndarray,
        cuda=cuda,
        random=random,
        get_default_memory_pool=_cuda.MemoryPool,
        __version__="14.0.0+strict.stand.in",
    )
    return {module.__name__: module for module in (cupy, random, cuda, runtime, *_cupyx_modules())}


def _cupyx_modules():
    special = StandIn("cupyx.scipy.special", erf=erf)
    scipy = StandIn("cupyx.scipy", special=special)
    cupyx = StandIn("cupyx", scipy=scipy, scatter_add=UFUNCS["add"].at)
    return cupyx, scipy, special


def install(monkeypatch, seed=0):
    """Install the stand-in until the test's `monkeypatch` is undone. Return the `cupy` module."""
    modules = _start(seed)
    for name in _real_names() - modules.keys():
        monkeypatch.delitem(sys.modules, name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules["cupy"]


@contextmanager
def installed(seed=0):
    """Install the stand-in for a block. Yield the `cupy` module."""
    modules = _start(seed)
    before = {name: sys.modules.pop(name) for name in _real_names()}
    sys.modules.update(modules)
    try:
        yield modules["cupy"]
    finally:
        for name in _real_names():
            del sys.modules[name]
        sys.modules.update(before)


def _start(seed):
    seed_races(seed)
    transfers.reset()
    return build()


def _real_names():
    return {name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx")}


def real_cupy_available():
    """Return whether the real CuPy is installed and finds a device."""
    if importlib.machinery.PathFinder.find_spec("cupy") is None or isinstance(
        sys.modules.get("cupy"), StandIn
    ):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cupy

            return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # whatever error a broken installation or driver raises, tests cannot use it
        return False
