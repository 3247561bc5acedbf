"""Trace: the functions of a file that run in a call, and the arrays in their variables."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from npformer.backend import Array

PACKAGE = str(Path(__file__).parents[1])


@dataclass
class Trace:
    """The record of a call: what ran in some files.

    Args:
        codes: The code of the functions that run, in the order of their first run.
        arrays: The arrays of floats in their variables, as the last run of each function leaves them.
        calls: The number of all calls of functions, in other files as well.
    """

    codes: list[CodeType] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    calls: int = 0


def trace(call: Callable[[], object], files: set[str]) -> Trace:
    """Return the trace of a call in these files. Under a profiler it is empty: there can be only one."""
    found = Trace()
    if sys.getprofile() is not None:
        return found

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        found.calls += event == "call"
        if frame.f_code.co_filename not in files:
            return
        if event == "call" and frame.f_code not in found.codes:
            found.codes.append(frame.f_code)
        elif event == "return":
            arrays = {name: _as_array(x) for name, x in frame.f_locals.items() if name != "_"}
            found.arrays |= {name: array for name, array in arrays.items() if array is not None}

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def files_of(*functions: Any) -> set[str]:
    """Return the files in which functions are written, without those of this package."""
    codes = [getattr(function, "__code__", None) for function in functions]
    return {code.co_filename for code in codes if code and not code.co_filename.startswith(PACKAGE)}


def _as_array(x: Any) -> Array | None:
    """Return a copy of an array of floats of NumPy, PyTorch or JAX, and None for other objects."""
    if type(x).__module__.partition(".")[0] not in ("numpy", "torch", "jaxlib"):
        return None
    try:
        array = np.array(x.detach().cpu() if hasattr(x, "detach") else x)
    except Exception:  # bfloat16, or an array of a compiled function, which has no numbers
        return None
    return array if array.dtype.kind == "f" else None
