"""Bisection: from a tensor whose gradient is wrong to the first entry that is."""

import numpy as np


def first_wrong_entry(is_wrong, v):
    """The index of the first entry whose part of the direction v is wrong.

    is_wrong takes a direction and tells whether numeric and analytic derivative differ along it. Each
    step halves the entries that are left, so a tensor of a million entries takes twenty evaluations.
    """
    start, end = 0, v.size
    while end - start > 1:
        middle = (start + end) // 2
        if is_wrong(_only(v, start, middle)):
            end = middle
        else:
            start = middle
    return tuple(int(i) for i in np.unravel_index(start, v.shape))


def _only(v, start, end):
    """The direction v with 0 everywhere but at the entries start .. end - 1."""
    part = np.zeros(v.size)
    part[start:end] = v.reshape(-1)[start:end]
    return part.reshape(v.shape)
