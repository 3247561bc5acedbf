"""Tables of learners' mistakes: a solution of each exercise, its wrong versions, and what must be named.

A table is a text file. Each exercise begins with a line "=== NAME", followed by a solution as a learner
writes it, a line "---" and one line for each mistake:

    correct code => wrong code ## what the clues must name

The last part is a regular expression. A line that begins with # says why other words name the mistake of the
next line as well. Several changes are separated by " && ". In the code, \\n ends a line.
A $ at the end of the correct code stands for the end of a line, and the last place is changed. A $ before the
wrong code keeps its indentation.
"""

import hashlib
import math
import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from npformer.learn.exercises import EXERCISES, explain, grade, repair
from npformer.mistakes.patterns import UNKNOWN

# messages that say more than "it is 1 and should be 2"
NAMING = "shape|dtype|must return|must take|returns|raised|writes into|float32"
# clues that say where the wrong results are, and name no mistake
PLACES = r"\d+ of \d+ entries are wrong|only .* (is|are) wrong: the other"
RIGHT, NOTHING, FALSE, UNDETECTED = "right", "nothing", "false", "undetected"


@dataclass(frozen=True)
class Mistake:
    """A wrong solution.

    Args:
        exercise: The name of the exercise.
        line: The line of the table.
        text: The text of the wrong solution.
        names: The regular expression that the clues must match.
    """

    exercise: str
    line: str
    text: str
    names: str

    def verdict(self, file):
        """Return the grader's verdict. The file is written first, because clues name its variables."""
        file.write_text(self.text, encoding="utf-8")
        return grade(EXERCISES.find(self.exercise), functions_of(self.text, str(file)), str(file))

    def score(self, verdict):
        """Judge a verdict: every clue must name the mistake, or, where there is none, the message must."""
        if verdict.solved:
            return UNDETECTED
        clues = [clue for clue in verdict.clues if clue != UNKNOWN]
        if clues and all(re.search(self.names, clue) for clue in clues):
            return RIGHT
        if not clues and re.search(NAMING, verdict.message) and re.search(self.names, verdict.message):
            return RIGHT
        return NOTHING if all(re.match(PLACES, clue) for clue in clues) else FALSE


def count_steps(monkeypatch, edits, mistakes=1000):
    """Let the grader's searches end after a number of steps in the place of a time, as on every machine.

    Args:
        monkeypatch: The fixture.
        edits: The number of edits of the learner's code that are tried.
        mistakes: The number of pairs of mistakes that are made in the solution.
    """
    limits_of = {explain.SECONDS: 10**9, explain.SECONDS_OF_PAIRS: mistakes}
    monkeypatch.setattr(explain, "Budget", lambda seconds: _limit_of(limits_of[seconds]))
    monkeypatch.setattr(repair, "Budget", lambda seconds: _limit_of(10**9))  # of lines
    limits = defaultdict(lambda: _limit_of(edits))
    monkeypatch.setattr(repair.RightResults, "is_over", lambda goal: limits[goal].is_over())


def _limit_of(steps):
    answers = chain(repeat(False, steps), repeat(True))
    return SimpleNamespace(is_over=lambda: next(answers))


def drawn(items, share):
    """Return all items every night, and otherwise the same 1 / share of them, at least one.

    Args:
        items: Mistakes or tuples, which a hash of their text draws.
        share: The reciprocal of the share.
    """
    items = list(items)
    if os.environ.get("NPFORMER_NIGHTLY"):
        return items
    by_hash = sorted(items, key=lambda item: hashlib.sha256(repr(item).encode()).digest())
    return [item for item in items if item in by_hash[: -(-len(items) // share)]]


def functions_of(text, file="<solution>"):
    """Return the names that a solution defines."""
    space = {"np": np, "math": math, "Counter": Counter}
    exec(compile(text, file, "exec"), space)
    return space


def solutions_of(table: Path):
    """Yield the pairs of an exercise's name and its correct solution."""
    for name, solution, _ in _sections(table):
        yield name, solution


def mistakes_of(table: Path):
    """Yield the mistakes of a table."""
    for name, solution, lines in _sections(table):
        for line in lines:
            if line.startswith("#"):
                continue
            changes, _, names = line.rpartition(" ## ")
            yield Mistake(name, line, _changed(solution, changes), names)


def _sections(table: Path):
    """Yield the name, the solution and the lines of mistakes of each exercise."""
    for section in table.read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, mistakes = section.partition("\n---\n")
        name, _, solution = head.partition("\n")
        yield name, solution + "\n", mistakes.splitlines()


def _changed(solution, changes):
    """Return the solution with all changes of a line."""
    for change in changes.split(" && "):
        old, _, new = change.replace("\\n", "\n").partition(" => ")
        new = new.removeprefix("$")
        if old.endswith("$"):
            old, new = old.removesuffix("$") + "\n", new + "\n"
            last = solution.rindex(old)
            solution = solution[:last] + new + solution[last + len(old) :]
            continue
        assert old in solution, f"{old!r} is not in the solution"
        solution = solution.replace(old, new, 1)
    return solution
