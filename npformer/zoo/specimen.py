"""Specimen: code with one bug, what one sees of it, how its repair is judged, and the story."""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

Names = SimpleNamespace  # what a file defines: the learner's, the one with the bug, or the repaired one


class Run(NamedTuple):
    """What one training showed."""

    losses: list[float]  # one a step
    facts: dict[str, Any]  # other numbers, by the names that the texts use

    def numbers(self) -> dict[str, Any]:
        """For the texts: the facts, and `first`, `last`, `steps` of the losses."""
        end = max(1, len(self.losses) // 20)
        last = float(np.mean(self.losses[-end:]))
        return {"first": self.losses[0], "last": last, "steps": len(self.losses), **self.facts}


@dataclass(frozen=True)
class Trial:
    """One test of behaviour: run(own) raises Fault where the code does not stand it.

    The label says what was looked at. It is shown once the bug is found, beside whether the code with the
    bug stood it: so one sees which checks are blind to it.
    """

    label: str
    run: Callable[[Names], None]


@dataclass(frozen=True)
class Specimen:
    """One bug. Its code is npformer.zoo.specimens.<name>, and repair the patch that takes the bug out.

    seen: what one sees, in a line; symptom and story: in paragraphs, where {bug[last]:.2f} and
    {right[last]:.2f} stand for what training with the bug and without it gave.
    train: a training of seconds, the same for each, with what the file defines.
    """

    number: int
    name: str
    seen: str
    symptom: str
    train: Callable[[Names], Run]
    trials: tuple[Trial, ...]
    hints: tuple[str, ...]
    story: str
    repair: str
    axes: tuple[str, str] = field(default=("step", "loss"))  # of the curve

    @property
    def stem(self) -> str:
        """The learner's file has this name, and .py."""
        return f"{self.number:02}_{self.name.replace('-', '_')}"

    @property
    def module(self) -> str:
        """Where the code with the bug is."""
        return f"npformer.zoo.specimens.{self.name.replace('-', '_')}"

    def code(self) -> str:
        """The code with the bug, without the docstring that says so."""
        text = inspect.getsource(importlib.import_module(self.module))
        docstring = ast.parse(text).body[0]
        return "".join(text.splitlines(keepends=True)[docstring.end_lineno :]).lstrip("\n")

    def repaired_code(self) -> str:
        """The same without the bug."""
        return patched(self.code(), self.repair)

    def names(self) -> list[str]:
        """The classes and functions that the file must define; what is in a cache is its own affair."""
        nodes = ast.parse(self.code()).body
        found = [node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        return [name for name in found if not name.endswith("Cache")]

    def buggy(self) -> Names:
        """What the code with the bug defines."""
        return names_of(self.code())

    def repaired(self) -> Names:
        """What the code without the bug defines."""
        return names_of(self.repaired_code())

    def file_text(self) -> str:
        """The learner's file."""
        seen = textwrap.fill(self.seen[0].upper() + self.seen[1:] + ".", 96)
        return f'''\
"""Bug {self.number}, {self.name}. {seen}

The code below has one bug; all that it imports is right. {self.stem}.png shows what it does.
The tools: npformer.gradcheck, npformer.assert_no_leak, npformer.show, and running things twice.

Try it out, in its folder:  python -i {self.stem}.py
Repair it, and then:        npformer bugs check
Where to look?              npformer bugs hint
"""

{self.code()}'''


def patched(code: str, patch: str) -> str:
    """The code with a patch: pieces between empty lines, with lines to keep ( ), take out (-) and put in (+).

    Errors: ValueError for a piece whose old lines are not in the code exactly once.
    """
    for piece in patch.strip("\n").split("\n\n"):
        lines = piece.split("\n")
        old = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
        new = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
        if code.count(old) != 1:
            raise ValueError(f"the code has these lines {code.count(old)} times, and not once:\n{old}")
        code = code.replace(old, new)
    return code


def names_of(code: str) -> Names:
    """Run the code of a specimen. Returns what it defines."""
    space: dict[str, Any] = {"__name__": "specimen"}
    exec(code, space)
    return SimpleNamespace(**space)
