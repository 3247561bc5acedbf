"""The arrays that take part in a forward pass and that are not checked."""

from typing import Any

import numpy as np

from npformer.backend import Array, is_array
from npformer.checking.check_target import CheckTarget
from npformer.checking.surroundings import other_arrays
from npformer.checking.trees import copy_tree, leaves
from npformer.errors import quantity
from npformer.nn.module import Module


def coverage_notes(target: CheckTarget, thing: Any) -> list[str]:
    """Return how many tensors were checked, and which arrays were not checked."""
    shapes = [f"{name} {np.shape(x)}" for name, x in target.inputs.items() if is_array(x)]
    where = f", with inputs of these shapes alone: {', '.join(shapes)}" if shapes else ""
    notes = [f"{quantity(len(target.tensors), 'tensor')} checked{where}"]
    notes += target.foreign.notes if target.foreign else []
    found = {id(parameter) for parameter in thing.parameters()} if isinstance(thing, Module) else set()
    hidden = [name for name, parameter in target.parameters.items() if id(parameter) not in found]
    if hidden and isinstance(thing, Module):
        notes.append(
            f"training does not find {', '.join(hidden)}: hold each parameter in an attribute of a Module, "
            "or in a list, a tuple or a dict there"
        )
    others = other_arrays(thing, target.settings)
    unchecked = [f"{name} {array.shape}" for name, array in others if _takes_part(target, array)]
    if unchecked:
        notes.append(
            f"forward also uses arrays that are not parameters and were not checked: {', '.join(unchecked)}"
        )
    return notes


def _takes_part(target: CheckTarget, array: Array) -> bool:
    """Return whether the output changes with an array."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return False
    before, kept = copy_tree(target.run()[0]), array.copy()
    try:
        array += 1e-3
        after = target.run()[0]
        return not all(np.array_equal(a, b) for a, b in zip(leaves(before), leaves(after), strict=True))
    finally:
        array[...] = kept
