"""Solutions of the exercises that measure the grader: wrong ones, right ones, and wrong ones without a name.

They were written without a look at the grader and at its lists of mistakes. Each kind has two files in
tests/learn/exercises/measure/. Those of development may guide changes of the grader. The held-out ones may
not: they only show how it does on solutions that nobody has looked at.

A file is a list of entries. An entry of wrong_development.txt is

    === softmax-backward
    --- mistake: The sum runs over the first axis and must run over the last one.
    --- words: sum, axis|row|last
    --- line: 7
    import numpy as np
    ...

The words are those that a correct message contains; alternatives are separated by |. The line is the one with
the mistake, counted from 1 in the code. Entries of the other kinds have a note in place of these three.
"""

import re
from collections import Counter
from typing import NamedTuple

from mistake_tables import PLACES, functions_of
from paths import TESTS

from npformer.learn.exercises import EXERCISES, grade
from npformer.mistakes.patterns import UNKNOWN

FOLDER = TESTS / "learn" / "exercises" / "measure"
KINDS, HALVES = ("wrong", "right", "unnameable"), ("development", "held_out")
FIELDS = {"wrong": ("mistake", "words", "line"), "right": ("note",), "unnameable": ("note",)}
WHOLE = 2  # alternatives of at most so many letters must be whole words


class Solution(NamedTuple):
    """A solution of an exercise."""

    exercise: str  # the name of the exercise
    code: str  # the text of the learner's file without its first docstring
    mistake: str = ""  # one sentence that says what is wrong; "" if nothing is, or nothing that has a name
    words: tuple[tuple[str, ...], ...] = ()  # for each word of a correct message, its alternatives
    line: int = 0  # the line with the mistake, from 1; 0 if there is none
    note: str = ""  # what is unusual about a right solution, or about a wrong one whose mistake has no name


def read_measure(kind, half):
    """Return the solutions of a kind, one of KINDS, in one of HALVES."""
    text = (FOLDER / f"{kind}_{half}.txt").read_text(encoding="utf-8")
    before, *entries = re.split(r"^=== ", text, flags=re.MULTILINE)
    assert not before, f"{kind}_{half}.txt begins with something else than an entry"
    return [read_entry(entry, FIELDS[kind]) for entry in entries]


def read_entry(text, names):
    """Return the solution in the text of an entry, from the name of the exercise on.

    Args:
        text: The text.
        names: The names of the fields before the code, in their order.
    """
    exercise, *lines = text.rstrip("\n").split("\n")
    fields = {}
    for name, line in zip(names, lines, strict=False):
        start = f"--- {name}: "
        assert line.startswith(start), f"{exercise}: {line!r} is not the field {name}"
        fields[name] = line.removeprefix(start)
    code = "\n".join(lines[len(names) :]) + "\n"
    words = tuple(tuple(word.split("|")) for word in fields.get("words", "").split(", ") if word)
    line = int(fields.get("line", 0))
    return Solution(exercise, code, fields.get("mistake", ""), words, line, fields.get("note", ""))


def has_words(message, words):
    """Return whether a message contains an alternative of each word.

    An alternative counts where a word of the message begins with it. One of one or two letters must be a
    whole word.

    Args:
        message: The message.
        words: The words of a solution.
    """
    message = message.lower()
    return all(any(_is_in(message, alternative) for alternative in alternatives) for alternatives in words)


def _is_in(message, alternative):
    pattern = re.escape(alternative)
    if alternative[0].isalnum():
        pattern = r"(?<!\w)" + pattern
    if len(alternative) <= WHOLE and alternative[-1].isalnum():
        pattern += r"(?!\w)"
    return re.search(pattern, message) is not None


def scores(solutions, folder):
    """Grade solutions, and count them, those that are accepted, and what the messages about the others say.

    Args:
        solutions: The solutions.
        folder: A folder for their files.

    Returns:
        A Counter of the solutions, of those that are accepted, of those with a clue that names a mistake, of
        messages with the words of the mistake, and of messages with its line.
    """
    counts = Counter(dict.fromkeys(("solutions", "accepted", "with a clue", "named", "exact line"), 0))
    for number, solution in enumerate(solutions):
        file = folder / f"{solution.exercise}_{number}.py"
        file.write_text(solution.code, encoding="utf-8")
        exercise = EXERCISES.find(solution.exercise)
        verdict = grade(exercise, functions_of(solution.code, str(file)), str(file))
        message = " ".join([verdict.message, *verdict.clues])
        counts["solutions"] += 1
        counts["accepted"] += verdict.solved
        counts["with a clue"] += any(c != UNKNOWN and not re.match(PLACES, c) for c in verdict.clues)
        counts["named"] += bool(solution.words) and has_words(message, solution.words)
        counts["exact line"] += str(solution.line) in re.findall(r"\bline (\d+)", message)
    return counts
