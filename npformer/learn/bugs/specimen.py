"""The declaration of a bug: its code, its symptom, the trials of a repair, and its story."""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from npformer.language import BUGS, phrase, say

# the names that a file defines: the learner's file, or the code with or without the bug
Names = SimpleNamespace


class Run(NamedTuple):
    """The result of one training."""

    losses: list[float]  # one for each step
    facts: dict[str, Any]  # other numbers, by the names that the texts use

    def numbers(self) -> dict[str, Any]:
        """Return the numbers for the texts: the facts, and `first`, `last` and `steps` of the losses."""
        end = max(1, len(self.losses) // 20)
        last = float(np.mean(self.losses[-end:]))
        return {"first": self.losses[0], "last": last, "steps": len(self.losses), **self.facts}


@dataclass(frozen=True)
class Trial:
    """One test of the code's behaviour.

    Args:
        label: A description of the test. After the repair, the learner sees which trials find the bug and
            which do not.
        observe: observe(own) runs the code and returns what it computes. It runs in the child process.
        judge: judge(observed, repaired) raises `Fault` if the code fails the test. `repaired` has the names
            of the repaired code, which gives the right results. It runs in the parent process.
    """

    label: str
    observe: Callable[[Names], Any]
    judge: Callable[[Any, Names], None]


@dataclass(frozen=True)
class Specimen:
    """Code with one bug. The code is the module npformer.learn.bugs.specimens.<name>.

    Args:
        summary: The symptom in one line, for the list.
        symptom: The symptom in paragraphs, where {bug[last]:.2f} and {right[last]:.2f} stand for numbers of
            the training with the bug and without it.
        train: A function that trains the code in a few seconds, always with the same seed.
        trials: The tests of a repair.
        english_hints: The hints, from the first to the last.
        story: The explanation that the learner reads at the end, with numbers as in `symptom`.
        repair: The patch that takes the bug out, for `patched`.
        axes: The labels of the curve's axes.
        number, name: The number of the bug, from 1, and its name, which the list of all bugs gives.
    """

    summary: str
    symptom: str
    train: Callable[[Names], Run]
    trials: tuple[Trial, ...]
    english_hints: tuple[str, ...]
    story: str
    repair: str
    axes: tuple[str, str] = ("step", "loss")
    number: int = 0
    name: str = ""

    def messages(self) -> Iterator[str]:
        """Yield the English texts that a learner reads, each on one line."""
        texts = (self.summary, self.symptom, *self.english_hints, self.story)
        yield from map(_on_one_line, texts)
        yield from (trial.label for trial in self.trials)

    @property
    def title(self) -> str:
        """The line for the list, in the current language."""
        return phrase(self.summary, BUGS)

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints in the current language, from the first to the last."""
        return tuple(phrase(_on_one_line(hint), BUGS) for hint in self.english_hints)

    @property
    def argument(self) -> str:
        """The number that commands shown to the learner use."""
        return str(self.number)

    @property
    def stem(self) -> str:
        """The name of the learner's file without its ending .py."""
        return f"{self.number:02}_{self.name.replace('-', '_')}"

    @property
    def module(self) -> str:
        """The module that holds the code with the bug."""
        return f"npformer.learn.bugs.specimens.{self.name.replace('-', '_')}"

    def code(self) -> str:
        """Return the code with the bug, without the docstring that names the bug."""
        text = inspect.getsource(importlib.import_module(self.module))
        docstring = ast.parse(text).body[0]
        return "".join(text.splitlines(keepends=True)[docstring.end_lineno :]).lstrip("\n")

    def repaired_code(self) -> str:
        """Return the code without the bug."""
        return patched(self.code(), self.repair)

    def names(self) -> list[str]:
        """Return the names of the classes and functions that the file must define, except caches."""
        nodes = ast.parse(self.code()).body
        found = [node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        return [name for name in found if not name.endswith("Cache")]

    def buggy(self) -> Names:
        """Return the names that the code with the bug defines."""
        return names_of(self.code())

    def repaired(self) -> Names:
        """Return the names that the code without the bug defines."""
        return names_of(self.repaired_code())

    def file_text(self) -> str:
        """Return the text of the learner's file."""
        head = say(
            "Bug {number}, {name}. {summary}.\n\n"
            "The code below has one bug. The modules that it imports are correct. {stem}.png shows its "
            "effect.\n"
            "Useful tools: npformer.gradcheck, npformer.assert_no_leak and npformer.show.\n\n"
            "To try the code, run in its folder:  python -i {stem}.py\n"
            "To check your repair, run:           npformer bugs check\n"
            "To see a hint, run:                  npformer bugs hint\n",
            number=self.number,
            name=self.name,
            summary=self.title[0].upper() + self.title[1:],
            stem=self.stem,
        )
        return f'"""{head}"""\n\n{self.code()}'


def fill(text: str, bug: Run, right: Run) -> str:
    """Return the text in the current language, with the numbers of both trainings in it.

    Args:
        text: A symptom or a story, with fields such as {bug[last]:.2f}.
        bug: The training with the bug.
        right: The training without it.
    """
    return phrase(_on_one_line(text), BUGS, bug=bug.numbers(), right=right.numbers())


def _on_one_line(text: str) -> str:
    """Return a text without breaks of lines."""
    return " ".join(text.split())


def patched(code: str, patch: str) -> str:
    """Apply a patch to some code and return the new code.

    A patch consists of pieces between empty lines. The lines of a piece begin with a space if they stay, with
    - if they are removed and with + if they are added.

    Raises:
        ValueError: If the old lines of a piece are not in the code exactly once.
    """
    for piece in patch.strip("\n").split("\n\n"):
        lines = piece.split("\n")
        old = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
        new = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
        if code.count(old) != 1:
            raise ValueError(f"the code has these lines {code.count(old)} times, not once:\n{old}")
        code = code.replace(old, new)
    return code


def names_of(code: str) -> Names:
    """Run the code of a specimen and return the names that it defines."""
    space: dict[str, Any] = {"__name__": "specimen"}
    exec(code, space)
    return SimpleNamespace(**space)
