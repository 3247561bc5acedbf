"""Outputs of a forward pass: an array, a number, or tuples, lists and dicts of them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from npformer.backend import Generator


def map_tree(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply a function to the arrays at each place of several trees of the same structure."""
    first = trees[0]
    if isinstance(first, dict):
        return {name: map_tree(function, *(tree[name] for tree in trees)) for name in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(map_tree(function, *parts) for parts in zip(*trees, strict=True)))
    if isinstance(first, (list, tuple)):
        return type(first)(map_tree(function, *parts) for parts in zip(*trees, strict=True))
    return function(*trees)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a tree."""
    if isinstance(tree, (dict, list, tuple)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(part)
    else:
        yield tree


def inner(dy: Any, y: Any) -> float:
    """Return <dy, y>, the sum over all outputs of the products of their entries."""
    return sum(float(np.sum(a * b)) for a, b in zip(leaves(dy), leaves(y), strict=True) if is_real(b))


def draw_like(y: Any, rng: Generator) -> Any:
    """Return a random gradient of each output: an array, or a Python float for a number such as a loss."""

    def draw(part: Any) -> Any:
        if not is_real(part):
            return part  # an output of integers has no gradient
        return float(rng.uniform(0.5, 1.5)) if np.ndim(part) == 0 else rng.standard_normal(np.shape(part))

    return map_tree(draw, y)


def norm(tree: Any) -> float:
    """Return the Euclidean norm of all outputs together. Its square may be larger than any float."""
    parts = [np.abs(np.asarray(part, np.complex128)) for part in leaves(tree) if is_real(part)]
    largest = max((float(part.max(initial=0)) for part in parts), default=0.0)
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(sum(float(((part / largest) ** 2).sum()) for part in parts)))


def copy_tree(tree: Any) -> Any:
    """Return the tree with copies of its arrays."""
    return map_tree(lambda part: np.array(part) if np.ndim(part) else part, tree)


def is_real(part: Any) -> bool:
    """Return whether an output has a gradient: a float, or an array of floats."""
    return getattr(part, "dtype", np.asarray(part).dtype).kind in "fc"
