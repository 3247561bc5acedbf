"""map_tensor, which lets the numbers of a tensor stay in their file, as a part of the memory.

The system reads a page of the file when one of its numbers is first used, without a copy for each process.
The map is private: the first time that the program writes to a page, the page is copied, and the file never
changes.

In return, the file must stay as it is while the map is in use. If another program makes it shorter, the next
use of a number that is gone ends the process (with the signal SIGBUS), and if it writes other numbers into
the file, those appear in the map, except in pages that were copied. To replace a file by another one, or to
delete it, is safe: the map keeps the old file. Windows allows neither as long as the file is mapped.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.interop.tensor_files import BLOCK, FLOATS, StoredTensor, require_finite

LEAST = 1 << 20  # bytes; a smaller tensor is read at once, and its file may change afterwards


def map_tensor(tensor: StoredTensor, dtype: Any) -> Array | None:
    """Return a tensor as a private map of its file, or None if it must be read.

    It must be read if it is small, if its numbers have another dtype in the file, if they do not begin at a
    multiple of their size, or if the system cannot map the file.

    Args:
        tensor: What the checked header of the file says about it.
        dtype: The dtype of the result.

    Returns:
        An array of the shape of the tensor. Writing to it does not change the file. Its numbers are not
        checked (see check_mapped).
    """
    dtype = np.dtype(dtype)
    if tensor.size < LEAST or FLOATS.get(tensor.dtype) != dtype.str or tensor.start % dtype.itemsize:
        return None
    page = tensor.start - tensor.start % mmap.ALLOCATIONGRANULARITY  # a map begins at such a multiple
    try:
        with open(tensor.path, "rb") as file:
            length = tensor.start + tensor.size - page
            data = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY, offset=page)
    except (OSError, ValueError):  # ValueError: the file became shorter, which is said when it is read
        return None
    return np.frombuffer(data, dtype, offset=tensor.start - page).reshape(tensor.shape)


def check_mapped(tensor: StoredTensor) -> None:
    """Check the numbers of a tensor that was mapped, in blocks, so that they are not copied.

    They are read in another map of the file, which ends with the check. So the map of the model takes memory
    only for pages that the model uses.

    Raises:
        UserError: If it has numbers that are not finite, or if the file became shorter.
    """
    dtype = FLOATS[tensor.dtype]
    numbers = map_tensor(tensor, dtype)
    if numbers is None:
        numbers = tensor.read(dtype)  # the error says what is wrong with the file
    numbers = numbers.reshape(-1)  # (N,), a view
    for first in range(0, len(numbers), BLOCK):
        require_finite(numbers[first : first + BLOCK], tensor)
