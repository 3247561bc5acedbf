"""The arrays that PyTorch computed, from oracle/golden.npz, and comparison with them."""

import functools

import numpy as np
from paths import ORACLE

TOLERANCE = 1e-10  # relative to an array's largest entry


@functools.cache
def golden_file():
    with np.load(ORACLE / "golden.npz") as file:
        return dict(file)


def golden(group):
    """Return the arrays of one component or model."""
    found = {name: array for name, array in golden_file().items() if name.startswith(f"{group}/")}
    assert found, f"golden.npz has nothing about {group}"
    return {name.removeprefix(f"{group}/"): array for name, array in found.items()}


def assert_close(ours, theirs, tolerance=TOLERANCE):
    """Check equal shapes, and that no error exceeds the tolerance times the largest entry."""
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()


def named(arrays, kind):
    """Return the values or gradients of the parameters, as `kind` says, by the parameters' names."""
    return {name.removeprefix(f"{kind}/"): a for name, a in arrays.items() if name.startswith(f"{kind}/")}
