"""The mistakes that are special to an exercise, as changes of its solution.

If the changed solution gives the learner's results, the message names the mistake. Mistakes that many
solutions share are in the table of npformer.mistakes.sentences: no table repeats them.

Each file has tables (see npformer.mistakes.tables). Above each stands "=== " and the names of its exercises.
If two mistakes give the same results, the first one is named.
"""

from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

from npformer.mistakes.tables import Mistake, rows_of


@cache
def special_mistakes() -> dict[str, list[Mistake]]:
    """Return the mistakes that are special to an exercise, by its name."""
    mistakes: dict[str, list[Mistake]] = defaultdict(list)
    for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        for section in import_module(f"{__name__}.{file.stem}").MISTAKES.split("=== ")[1:]:
            names, _, table = section.partition("\n")
            for name in names.split():
                mistakes[name] += rows_of(table)
    return mistakes
