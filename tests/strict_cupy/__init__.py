"""A strict stand-in for CuPy, for machines without a GPU.

    with strict_cupy.installed() as cupy:
        x = cupy.asarray(weights)      # code that says `import cupy` gets the same module

It computes with NumPy but behaves as CuPy does, at its least forgiving: nothing crosses between host
and device unless asked to, nothing works that CuPy lacks, and what a GPU leaves undefined comes out
different from NumPy's answer. Where CuPy 13 and 14 differ, it has what both have, with the type
promotion of 14 (NumPy 2).

It refuses more than CuPy in a few places, always with an error, never with another number:
NumPy functions on device arrays (CuPy dispatches those it knows), NumPy arrays as indices or assigned
values (CuPy copies them over), `where=` in `copyto`, lists holding device arrays, comparison with None.
It cannot show rounding that differs from a CPU's, CUDA source, or asynchrony.
"""

from ._install import install, installed, real_cupy_available
from ._transfers import counted_transfers, transfers

__all__ = ["counted_transfers", "install", "installed", "real_cupy_available", "transfers"]
