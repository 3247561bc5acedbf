"""Memory that arrays free stays with the process, so that the next step finds its room already there."""

import ctypes
import sys

# of glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> bool:
    """Have malloc keep what is freed, for all threads in one place. Returns whether it could be told.

    Otherwise large arrays go back to the system when they are freed, and each page of the next one has to
    be fetched and cleared anew: at every step the same gigabyte, a tenth of a small model's time. And with
    one place, what one thread frees is room for the others. Only glibc, Linux's usual C library, is told.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return False
    return all(
        [
            mallopt(M_TRIM_THRESHOLD, -1),  # never give the heap's end back
            mallopt(M_MMAP_MAX, 0),  # large arrays on the heap, too
            mallopt(M_ARENA_MAX, 1),  # one heap
        ]
    )
