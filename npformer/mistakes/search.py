"""The search for edits of some functions after which a goal is reached."""

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from npformer.mistakes.budget import limited_memory
from npformer.mistakes.edits import edits
from npformer.mistakes.operators import simplifications
from npformer.mistakes.scope import Scope
from npformer.mistakes.source import EditableFunction, find_functions
from npformer.mistakes.syntax import Edit

PATIENCE = 1500  # edits that are tried after the best one so far, before that one is made

Right: TypeAlias = frozenset[Any]  # the names of the results that are right


class Goal(Protocol):
    """Results that a search is to make right."""

    def right(self, before: Right | None) -> Right:
        """Return the names of the results that are right with the functions as they are now.

        Args:
            before: The results that were right before the last edit. The goal may stop, with no result, as
                soon as it is known that not all of them, or not more, are right now.
        """

    def is_reached(self, right: Right) -> bool:
        """Return whether all results are right."""

    def is_over(self) -> bool:
        """Return whether the search must end. It is called once before each edit."""


class Search:
    """A search that makes one edit after the other, each of which makes more results right.

    Args:
        goal: The goal.
        functions: The functions with the scopes of their edits.
        most: The largest number of edits.

    Attributes:
        made: The edits that were made.
        before: The results that were right at the beginning.
        right: The results that are right with these edits.
    """

    def __init__(self, goal: Goal, functions: Sequence[tuple[EditableFunction, Scope]], most: int) -> None:
        self.made: list[Edit] = []
        self._goal, self._functions, self._most = goal, functions, most
        find_functions([function for function, _ in functions])
        self.before = self.right = Right()
        with _quiet(), limited_memory(), contextlib.suppress(MemoryError):
            self.before = self.right = self._results([], None)
            self._run()

    @property
    def is_successful(self) -> bool:
        """True if edits were made after which all results are right."""
        return bool(self.made) and self._goal.is_reached(self.right)

    def _run(self) -> None:
        while len(self.made) < self._most and not self._goal.is_reached(self.right):
            edit, right = self._best()
            if edit is None:
                return
            edit.make()
            self.made.append(edit)
            self.right = right

    def _best(self) -> tuple[Edit | None, Right]:
        """Return the first edit that makes all results right, or the one that makes most of them right."""
        best, best_right = None, self.right
        since = 0
        for edit in edits([(function.definition, scope) for function, scope in self._functions]):
            since += best is not None
            if self._goal.is_over() or since > PATIENCE:
                break
            with edit.made():
                right = self._results([*self.made, edit], self.right)
            if self._goal.is_reached(right):
                return edit, right
            if len(right) > len(best_right):
                best, best_right, since = edit, right, 0
        return best, best_right

    def simplify(self) -> None:
        """Simplify the statements of the edits that were made, as long as all results stay right."""
        with _quiet(), limited_memory():
            for edit in self.made:
                while simpler := next(filter(self._stays_right, simplifications(edit)), None):
                    simpler.make()

    def _stays_right(self, simpler: Edit) -> bool:
        with simpler.made():
            return self._goal.is_reached(self._results(self.made, None))

    def _results(self, made: list[Edit], before: Right | None) -> Right:
        """Return the results that are right with some edits, or none if they are no Python."""
        changed = [edit.function for edit in made]
        try:
            with contextlib.ExitStack() as stack:
                for function, _ in self._functions:
                    if function.definition in changed:
                        stack.enter_context(function.replaced())
                return self._goal.right(before)
        except Exception:  # an edited function may raise anything
            return frozenset()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Show no prints and no warnings of edited code."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
