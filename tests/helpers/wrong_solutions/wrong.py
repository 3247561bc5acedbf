"""A wrong solution of an exercise, with the diagnosis that the grader must make."""

import inspect
import sys
import textwrap
from dataclasses import dataclass

import numpy as np

from npformer.learn.exercises import EXERCISES


@dataclass(frozen=True)
class Wrong:
    """A wrong solution: the package's function with one change.

    Args:
        exercise: The name of the exercise.
        old: The text of the function that is replaced, or "" to replace the whole function.
        new: The text in its place.
        diagnosis: A regular expression that the diagnosis must match: the kind of mistake, not the sentence.
        function: The name of the function. The default is the first of the exercise.
    """

    exercise: str
    old: str
    new: str
    diagnosis: str
    function: str = ""

    def functions(self):
        """Return the exercise's functions, one of which is wrong."""
        solution = dict(EXERCISES.find(self.exercise).solution)
        name = self.function or next(iter(solution))
        solution[name] = self._changed(solution[name])
        return solution

    def _changed(self, function):
        text = textwrap.dedent(inspect.getsource(function))
        if self.old:
            assert text.count(self.old) == 1, f"{self.old!r} is not once in {function.__qualname__}"
            text = text.replace(self.old, self.new)
        else:
            text = self.new
        namespace = {"np": np} | vars(sys.modules[function.__module__])
        before = set(namespace)
        exec(compile(text, "<wrong solution>", "exec"), namespace)
        name = function.__name__ if function.__name__ in text else (set(namespace) - before).pop()
        return namespace[name]
