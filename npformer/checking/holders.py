"""Find the objects that a layer holds: in attributes, slots, lists, dicts and other objects, at any depth.

A Module finds its parameters in attributes, lists, tuples and dicts. A gradient check also looks everywhere
else, so that it overlooks no parameter, no random generator and no array that a pass uses.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from npformer.nn.module import Module, Parameter

CONTAINERS = (list, tuple, set, frozenset, deque, Mapping, SimpleNamespace)
MEMBERLESS = (type, ModuleType, FunctionType, MethodType, str, bytes, bool, int, float, complex, type(None))
_MEMBERLESS = frozenset(MEMBERLESS)  # for a quick test of a type

Members: TypeAlias = Iterable[tuple[str, Any]]  # pairs (name, member)


def held_objects(
    holder: Any, wanted: Callable[[Any], bool], *, enter: Callable[[Any], bool] = lambda item: False
) -> list[tuple[str, Any]]:
    """Return pairs (dotted name, object) of the wanted objects below a holder, in the order of definition.

    Args:
        holder: A layer, a container, or any other object.
        wanted: A function of an object: True if it is to be found. A wanted object that occurs twice, such as
            a tied parameter, is found twice.
        enter: A function of a wanted object: True if the objects below it are searched as well.
    """
    found: list[tuple[str, Any]] = []
    above = {id(holder)}  # the objects that hold the present one: a part may point to its model

    def search(holder: Any, prefix: str) -> None:
        for name, item in members_of(holder):
            kind: Any = type(item)  # for mypy, a class is not hashable
            if kind in _MEMBERLESS or id(item) in above:
                continue
            is_wanted = wanted(item)
            if is_wanted:
                found.append((prefix + name, item))
            if enter(item) if is_wanted else holds_others(kind):
                above.add(id(item))
                search(item, f"{prefix}{name}.")
                above.remove(id(item))

    search(holder, "")
    return found


def members_of(holder: Any) -> Members:
    """Return pairs (name, member) of a container or of the attributes of an object."""
    kind: Any = type(holder)
    return _lister(kind)(holder)


@cache
def _lister(kind: type) -> Callable[[Any], Members]:
    """Return the function that lists the members of the objects of a class."""
    if issubclass(kind, Mapping):
        return _of_mapping
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return lambda holder: zip(holder._fields, holder, strict=True)
    if issubclass(kind, (list, tuple, set, frozenset, deque)):
        return lambda holder: ((str(index), item) for index, item in enumerate(holder))
    return _attributes


def _of_mapping(holder: Mapping[Any, Any]) -> Members:
    for key, item in holder.items():
        yield ".".join(map(str, key)) if isinstance(key, tuple) else str(key), item


def _attributes(holder: Any) -> Members:
    """Return the attributes of an object: its own, its slots, and those that its class holds for all."""
    own = getattr(holder, "__dict__", {})
    kind: Any = type(holder)
    # the value of an empty slot is taken to be None
    shared = [(name, getattr(holder, name, None)) for name in _class_members(kind) if name not in own]
    return [*own.items(), *shared]


@cache
def _class_members(kind: type) -> tuple[str, ...]:
    """Return the names of the slots of a class and of the objects that it holds for all."""
    members = {name: member for owner in kind.__mro__ for name, member in vars(owner).items()}
    return tuple(
        name
        for name, member in members.items()
        if not name.startswith("__")
        and not callable(member)
        and (type(member) is MemberDescriptorType or not hasattr(member, "__get__"))  # a property runs code
    )


@cache
def holds_others(kind: type) -> bool:
    """Return whether objects of a class may hold others: containers, and objects that are not of Python."""
    if issubclass(kind, CONTAINERS):
        return True
    if issubclass(kind, (*MEMBERLESS, np.ndarray)):
        return False
    package = kind.__module__.partition(".")[0]
    return package not in sys.stdlib_module_names and package not in ("numpy", "cupy")


def named_parameters(holder: Any) -> Iterator[tuple[str, Parameter]]:
    """Yield pairs (dotted name, Parameter) of a Module or of any other object, each parameter once.

    A parameter is a Parameter, or any object with the attributes value and grad.
    """
    seen = set()
    for name, item in held_objects(holder, _is_module_or_parameter, enter=is_module):
        if not is_module(item) and id(item) not in seen:
            seen.add(id(item))
            yield name, item


def is_module(item: Any) -> bool:
    """Return True for a Module."""
    return isinstance(item, Module)


def _is_module_or_parameter(item: Any) -> bool:
    return isinstance(item, (Module, Parameter)) or (hasattr(item, "value") and hasattr(item, "grad"))
