"""Plain solutions of the exercises, with the mistakes that learners make in them.

A solution is written as the hints suggest, in plain NumPy and with the names of the stub. The grader makes
each mistake in its source. If the changed solution gives the learner's results, the message names the
mistake.
"""

from importlib import import_module
from pathlib import Path

from npformer.learn.exercises.plain.registry import MISTAKES, PLAIN, Mistake, add_mistakes

__all__ = ["MISTAKES", "PLAIN", "Mistake"]

for _file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    if _file.stem != "registry":
        add_mistakes(import_module(f"{__name__}.{_file.stem}").MISTAKES)
