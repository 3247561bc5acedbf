"""The declaration of an exercise: the learner's file, its trials, its hints and two solutions.

One solution is the package's own. The other completes the learner's file as the hints suggest, in plain
NumPy: in its source the grader makes mistakes. If the changed solution gives the learner's results, the
message names the mistake.
"""

import ast
import linecache
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.language import current_language, phrase, say
from npformer.learn.exercises.special import special_mistakes
from npformer.mistakes.concepts import concepts_in
from npformer.mistakes.mutants import source_of
from npformer.mistakes.tables import Mistake

SEED = 11  # of the inputs of the public trials
SOLUTION = "    # solution"  # the line before the lines that the learner writes
# a docstring of a function, or a comment with words and not only code
TEXT = re.compile(
    r'^    """(?P<docstring>(?:[^"]|"(?!""))+)(?=""")|# (?P<comment>.*\b[a-z]{2,} [a-z]{2,}\b.*)$',
    re.MULTILINE,
)
WORDS = re.compile(r"(?:^|[ ,(])[a-z-]{2,}(?:[ ,)]|$)")  # of a label that is not only code
HIDDEN = "hidden inputs"  # the label of trials on inputs that learners do not know

Functions = SimpleNamespace  # the learner's functions by name, or the package's own


@dataclass(frozen=True)
class Gradients:
    """A trial by gradient check in float64.

    Args:
        label: A name for this trial in messages; "" if it needs none.
        make: make(own, rng) returns (target, *inputs). The target is a pair (forward, own.backward), or a
            layer whose backward method calls the learner's function.
        settings: Keyword arguments of forward.
        seed: The seed of the inputs.
    """

    label: str
    make: Callable[[Functions, Any], tuple[Any, ...]]
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = SEED


@dataclass(frozen=True)
class Values:
    """A trial that compares the learner's results with the package's.

    Args:
        label: A name for this trial in messages; "" if it needs none.
        run: run(own, rng) returns a dict from name to result.
        numbers: Pairs (number, name) of numbers that may be a wrong factor.
        hidden: The run of a hidden trial, where `run` has fixed inputs: the same calls with drawn ones.
        seed: The seed of the inputs.
    """

    label: str
    run: Callable[[Functions, Any], dict[str, Any]]
    numbers: tuple[tuple[float, str], ...] = ()
    hidden: Callable[[Functions, Any], dict[str, Any]] | None = None
    seed: int = SEED


class Task:
    """The parts of an exercise that are no text.

    Args:
        solution: The function of the package that solves it, or a tuple of one for each function of the text.
        trials: The trials, in the order in which they are run.
        writes: True if the functions are meant to change the arrays that they are given.
    """

    def __init__(self, solution: Any, *trials: "Gradients | Values", writes: bool = False) -> None:
        self.solution = solution if isinstance(solution, tuple) else (solution,)
        self.trials, self.writes = trials, writes


@dataclass(frozen=True)
class Exercise:
    """An exercise.

    Args:
        name: The name, which is also the name of the learner's file.
        chapter: The number of the chapter.
        english_title: One line for the list.
        code: Python text: imports, and functions with a docstring. After a line "    # solution" stands what
            the learner writes.
        trials: The trials, in the order in which they are run.
        english_hints: The hints, from the first to the last.
        solution: For each function of the stub, the function of the package that solves it.
        writes: True if the functions are meant to change the arrays that they are given.
    """

    name: str
    chapter: int
    english_title: str
    code: str
    trials: tuple[Gradients | Values, ...]
    english_hints: tuple[str, ...]
    solution: dict[str, Callable[..., Any]]
    writes: bool = False

    @property
    def catalog(self) -> str:
        """The name of the catalog with the translations of the chapter's exercises."""
        return f"exercises/{self.chapter:02}"

    def say(self, text: str) -> str:
        """Return a text of the exercise in the current language."""
        return phrase(text, self.catalog)

    def messages(self) -> Iterator[str]:
        """Yield the English texts of the exercise that a learner reads."""
        yield self.english_title
        yield from (_text(found) for found in TEXT.finditer(self.stub))
        yield from self.english_hints
        for trial in self.trials:
            names = [trial.label, *(what for _, what in getattr(trial, "numbers", ()))]
            if isinstance(trial, Values):
                names += trial.run(Functions(**self.solution), np.random.default_rng(trial.seed))
            yield from filter(WORDS.search, names)
        yield from (mistake.says for mistake in special_mistakes()[self.name])

    @property
    def title(self) -> str:
        """One line for the list, in the current language."""
        return self.say(self.english_title)

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints in the current language, from the first to the last."""
        return tuple(map(self.say, self.english_hints))

    def label(self, name: str, trial: Gradients | Values) -> str:
        """Return the name of a result of a trial, for messages."""
        name = self.say(name)
        return say("{name} ({label})", name=name, label=self.say(trial.label)) if trial.label else name

    @property
    def number(self) -> int:
        """The number of the chapter."""
        return self.chapter

    @property
    def argument(self) -> str:
        """The name that commands shown to the learner use."""
        return self.name

    @property
    def stem(self) -> str:
        """The name of the learner's file without its ending .py."""
        return self.name

    @property
    def stub(self) -> str:
        """The text of the learner's file when it is started: without its docstring, and the solution."""
        return re.sub(rf"{SOLUTION}\n( {{4}}.+\n)*", "", self.code)

    @property
    def plain(self) -> dict[str, Callable[..., Any]]:
        """The plain solution: its functions by name."""
        return _defined(f"<{self.name}>", self.code)

    @property
    def special_mistakes(self) -> list[Mistake]:
        """The mistakes in the tables of the exercise."""
        return [replace(mistake, says=self.say(mistake.says)) for mistake in special_mistakes()[self.name]]

    @property
    def mistakes(self) -> list[Mistake]:
        """The mistakes that learners often make: first those that are special to the exercise."""
        return self.special_mistakes + self.shared_mistakes

    @property
    def shared_mistakes(self) -> list[Mistake]:
        """The mistakes that many solutions share, where the solution has code of their form."""
        return _shared(f"<{self.name}>", self.code, current_language())

    @property
    def functions(self) -> list[str]:
        """The names of the functions to write, in the stub's order."""
        return [node.name for node in ast.parse(self.stub).body if isinstance(node, ast.FunctionDef)]

    def arguments(self, function: str) -> list[str]:
        """Return the names of the positional arguments of a function of the stub."""
        for node in ast.parse(self.stub).body:
            if isinstance(node, ast.FunctionDef) and node.name == function:
                return [argument.arg for argument in node.args.args]
        raise KeyError(function)

    def with_hidden_trials(self, seed: int) -> "Exercise":
        """Return the exercise with each trial once more, on inputs from another seed.

        Args:
            seed: The seed of the hidden inputs.
        """
        return replace(self, trials=self.trials + tuple(_hidden(trial, seed) for trial in self.trials))

    @property
    def shown_stub(self) -> str:
        """The stub with its docstrings and comments in the current language."""
        return self.translated(self.stub)

    def translated(self, code: str) -> str:
        """Return the stub or the code with its docstrings and comments in the current language."""

        def shown(found: re.Match[str]) -> str:
            begin = found[0].removesuffix(found["docstring"] or found["comment"])
            return begin + self.say(_text(found)).replace("\n", "\n    ").replace("\n    \n", "\n\n")

        return TEXT.sub(shown, code)

    def file_text(self, which: str = "") -> str:
        """Return the text of the learner's file.

        Args:
            which: What its commands say to find the file, such as "softmax --dir ."; by default nothing,
                since they find the file that was started last.
        """
        which = f" {which}" * bool(which)
        head = say(
            "Chapter {chapter}, exercise {name}: {title}.\n\n"
            "Write the missing lines below. To check them, run:  npformer exercise check{which}\n"
            "To see a hint, run:                                 npformer exercise hint{which}\n",
            chapter=self.chapter,
            name=self.name,
            title=self.title,
            which=which,
        )
        return f'"""{head}"""\n{self.shown_stub}'


def _text(found: re.Match[str]) -> str:
    """Return the text of a docstring or of a comment."""
    return dedent(f"    {found['docstring']}") if found["docstring"] else found["comment"]


@cache
def _defined(file: str, code: str) -> dict[str, Callable[..., Any]]:
    """Return the functions that some code defines, whose source inspect finds as if a file had the code.

    A mistake in them may use np, math and npformer.functional, even if the code does not import them.
    """
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"np": np, "math": math, **vars(F)}
    exec(compile(code, file, "exec"), namespace)
    names = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    return {name: namespace[name] for name in names}


@cache
def _shared(file: str, code: str, language: str) -> list[Mistake]:
    """Return the mistakes that many solutions share, as changes of the plain solution of an exercise.

    The sentences are in the current language, which is an argument for the cache.
    """
    solution = _defined(file, code)

    def mistakes() -> Iterator[Mistake]:
        for name, function in solution.items():
            where = f"{name}: " * (len(solution) > 1)
            for says, changes in concepts_in(source_of(function)):
                yield Mistake(where + says, changes, is_shared=True)

    return list(mistakes())


def _hidden(trial: Gradients | Values, seed: int) -> Gradients | Values:
    """Return a trial on inputs from another seed."""
    label = f"{trial.label}, {HIDDEN}" if trial.label else HIDDEN
    if isinstance(trial, Values):
        return replace(trial, seed=seed, label=label, run=trial.hidden or trial.run)
    return replace(trial, seed=seed, label=label)


def exercises(text: str, tasks: Mapping[str, Task]) -> tuple[Exercise, ...]:
    """Return the exercises in a text.

    Args:
        text: An exercise begins with a line "=== CHAPTER NAME: TITLE". Then come its code and
            its hints, each of which begins with "--- ".
        tasks: The parts of each exercise that are no text, by its name.
    """

    def read(section: str) -> Exercise:
        head, _, body = section.partition("\n")
        number, _, rest = head.partition(" ")
        name, _, title = rest.partition(": ")
        code, *hints = re.split("^--- ", body, flags=re.MULTILINE)
        task = tasks[name]
        functions = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
        return Exercise(
            name,
            int(number),
            title,
            f"\n{code}",
            task.trials,
            tuple(" ".join(hint.split()) for hint in hints),
            dict(zip(functions, task.solution, strict=True)),
            task.writes,
        )

    return tuple(map(read, re.split("^=== ", text, flags=re.MULTILINE)[1:]))
