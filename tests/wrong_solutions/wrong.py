"""Wrong: one wrong solution of an exercise, and what the grader must say about it."""

import inspect
import sys
import textwrap
from dataclasses import dataclass

from npformer.exercises import find


@dataclass(frozen=True)
class Wrong:
    """The package's function with `old` replaced by `new`; or, where old is "", `new` as the whole body.

    says is a regular expression that the diagnosis must match: the kind of mistake, not the sentence.
    """

    exercise: str
    old: str
    new: str
    says: str
    function: str = ""  # the first of the exercise

    def functions(self):
        """The exercise's functions, one of them wrong."""
        solution = dict(find(self.exercise).solution)
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
        space = dict(vars(sys.modules[function.__module__]))
        before = set(space)
        exec(compile(text, "<wrong solution>", "exec"), space)
        name = function.__name__ if function.__name__ in text else (set(space) - before).pop()
        return space[name]
