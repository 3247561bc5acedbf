"""A strict stand-in for CuPy, for machines without a GPU.

    with strict_cupy.installed() as cupy:
        x = cupy.asarray(weights)      # code that says `import cupy` gets the same module

It computes with NumPy but is at least as strict as CuPy. There are no implicit transfers between host and
device, only the functions of CuPy exist, and results that are undefined on a GPU differ from NumPy's. Where
CuPy 13 and 14 differ, it has what both have, with the type promotion of 14 (NumPy 2).

In a few places it refuses more than CuPy, always with an error and never with another number: NumPy functions
on device arrays (CuPy dispatches those it knows), NumPy arrays as indices or assigned values (CuPy copies
them to the device), `where=` in `copyto`, lists of device arrays, comparison with None. It cannot simulate
rounding that differs from a CPU's, CUDA source, or asynchronous execution.
"""

from ._install import install, installed, real_cupy_available
from ._transfers import counted_transfers, transfers

__all__ = ["counted_transfers", "install", "installed", "real_cupy_available", "transfers"]
