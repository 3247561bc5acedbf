"""The functions of all parts: those of the learner's files, and the package's in place of the others.

The functions call each other through the names that the files of the exercises import. For example, the file
of attention calls the package's F.softmax. Here F has the softmax of the assembled Transformer in its place,
so that the learner's attention computes with the learner's softmax. So it is for a file that imports softmax.
"""

import math
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.functional.attention import AttentionCache
from npformer.language import say
from npformer.learn.capstone.parts import PARTS
from npformer.learn.exercises import Exercise
from npformer.learn.exercises.topics.tools import output, without_like
from npformer.learn.tasks.verdict import describe_error

Function: TypeAlias = Callable[..., Any]
Functions: TypeAlias = SimpleNamespace  # the functions of all parts by name

# the forward passes of which a learner returns the output alone
OUTPUTS = ("softmax", "attention", "layer_norm", "embedding", "cross_entropy")


class LearnersError(Exception):
    """The learner's code does not do what a part needs. The message is a sentence."""


def collect_functions(folder: Path, own: Collection[str]) -> Functions:
    """Return the functions of all parts.

    Args:
        folder: The folder of the learner's files, which are run.
        own: The names of the parts that are the learner's. The others are the package's.
    """
    functions = Functions()
    namespaces = []
    for part in PARTS:
        for exercise in part.exercises:
            take = _run_file if part.name in own else _copy_package
            namespace = take(folder, exercise)
            for name in exercise.functions:
                setattr(functions, name, _as_called(name, namespace[name]))
            namespaces.append(namespace)
    _connect(functions, namespaces)
    return functions


def guarded(
    folder: Path, own: Collection[str], work: Callable[[Functions], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the result of the work with the learner's functions, or a sentence about an exception as "error".

    Args:
        folder: The folder of the learner's files, which are run.
        own: The names of the parts that are the learner's. The others are the package's.
        work: work(functions) computes with the functions of all parts.
    """
    try:
        with np.errstate(all="ignore"):
            result = work(collect_functions(folder, own))
    except LearnersError as error:
        result = {"error": str(error)}
    except SystemExit as error:
        ended = say("your code ended the program (SystemExit {code}): leave out exit()", code=error.code)
        result = {"error": ended}
    except BaseException as error:  # the learner's code may raise anything
        result = {"error": describe_error(error, "")}
    yield result


def _run_file(folder: Path, exercise: Exercise) -> dict[str, Any]:
    """Run the learner's file of an exercise and return all names that it defines."""
    file = folder / f"{exercise.stem}.py"
    namespace: dict[str, Any] = {"__name__": "exercise", "__file__": str(file)}
    exec(compile(file.read_text(encoding="utf-8-sig"), str(file), "exec"), namespace)
    for name in exercise.functions:
        if not callable(namespace.get(name)):
            raise LearnersError(say("there is no function {name} in {file}", name=name, file=file.name))
    return namespace


def _copy_package(folder: Path, exercise: Exercise) -> dict[str, Any]:
    """Return the package's functions for an exercise, and a copy of the names that they use."""
    namespace: dict[str, Any] = {}
    for function in exercise.plain.values():
        plain: Any = function
        namespace |= plain.__globals__
    for name, function in exercise.plain.items():
        plain = function
        namespace[name] = FunctionType(plain.__code__, namespace, name, plain.__defaults__)
        namespace[name].__kwdefaults__ = plain.__kwdefaults__
    return namespace


def _as_called(name: str, function: Function) -> Function:
    """Return the function as the layers of the Transformer call it."""
    if name in OUTPUTS:
        return lambda *args, **settings: output(function(*args, **settings))
    if name == "causal_mask":
        function = without_like(function)  # the package's own takes an argument more
    return lambda *args, **settings: function(*args, **settings)  # a layer that holds it looks no deeper


# ---------------------------------------------------------------------------------------------------------
# Functions that call each other


def _connect(functions: Functions, namespaces: list[dict[str, Any]]) -> None:
    """Bind the package's functions in these namespaces, and those of F, to the functions of the parts."""
    pairs = (
        (F.softmax, _with_output_as_cache(functions)),
        (F.softmax_backward, functions.softmax_backward),
        (F.attention, attention_with_cache(functions)),
        (F.attention_backward, functions.attention_backward),
        (F.split_heads, functions.split_heads),
        (F.merge_heads, functions.merge_heads),
    )
    bound: dict[int, Any] = {id(package): function for package, function in pairs}
    bound[id(F)] = SimpleNamespace(**{name: bound.get(id(value), value) for name, value in vars(F).items()})
    for namespace in namespaces:
        for name, value in list(namespace.items()):
            namespace[name] = bound.get(id(value), value)


def _with_output_as_cache(functions: Functions) -> Function:
    """Return softmax(x) -> (y, cache). The cache of the softmax is y."""

    def softmax(x: Array) -> tuple[Array, Array]:
        y = functions.softmax(x)
        return y, y

    return softmax


def attention_with_cache(functions: Functions) -> Function:
    """Return attention(q, k, v, mask) -> (y, cache), from a function that returns y = weights v alone.

    The weights are the output for v = I, the identity matrix. So v is extended by I to the right, and the
    output consists of y and of the weights.
    """

    def attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> tuple[Array, AttentionCache]:
        width, length = v.shape[-1], k.shape[-2]
        identity = np.broadcast_to(np.eye(length, dtype=v.dtype), (*v.shape[:-1], length))  # (..., S, S)
        both = functions.attention(q, k, np.concatenate([v, identity], -1), mask)  # (..., T, L + S)
        y, weights = both[..., :width], both[..., width:]
        return y, AttentionCache(q, k, v, weights, None, None, 1 / math.sqrt(q.shape[-1]))

    return attention
