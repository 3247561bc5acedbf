"""Exercise: what the learner is given, how it is checked, and where the package solves it."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Functions = SimpleNamespace  # the learner's functions by name, or the package's own


@dataclass(frozen=True)
class Gradients:
    """A trial by gradient check: make(own, rng) -> (what to check, *inputs), at float64.

    What to check is a pair (forward, own.backward), or a layer whose backward calls the learner's function.
    settings go to forward.
    """

    label: str
    make: Callable[[Functions, Any], tuple]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Values:
    """A trial by comparison: run(own, rng) -> a dict from name to what came out, here and in the package.

    numbers are pairs (number, its name) that a wrong factor may come from.
    """

    label: str
    run: Callable[[Functions, Any], dict[str, Any]]
    numbers: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Exercise:
    """One task. `stub` is Python text: imports, and functions with a docstring and no body.

    solution says, for each function of the stub, which function of the package solves it.
    writes: whether it is meant to change the arrays that it is given.
    """

    name: str
    lesson: int
    title: str
    stub: str
    trials: tuple[Gradients | Values, ...]
    hints: tuple[str, ...]
    solution: dict[str, Callable]
    writes: bool = False

    @property
    def stem(self) -> str:
        """The learner's file has this name, and .py."""
        return self.name

    @property
    def functions(self) -> list[str]:
        """The names of the functions to write, in the stub's order."""
        return [node.name for node in ast.parse(self.stub).body if isinstance(node, ast.FunctionDef)]

    def file_text(self) -> str:
        """The learner's file."""
        head = f'''\
"""Lesson {self.lesson}, exercise {self.name}: {self.title}.

Write the missing lines below, then:  npformer exercise check
No idea how to begin?                 npformer exercise hint
"""
'''
        return head + self.stub
