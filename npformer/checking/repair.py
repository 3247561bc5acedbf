"""The repair of a backward pass: edits after which all gradients are correct at two points."""

import ast
import contextlib
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.check_target import Gradients
from npformer.checking.derivative import uneven_signs
from npformer.checking.draw import Draw, run_with_other_inputs
from npformer.checking.trace import trace
from npformer.checking.trees import copy_tree, draw_like
from npformer.mistakes.budget import Budget
from npformer.mistakes.scope import scope_of
from npformer.mistakes.search import Right, Search
from npformer.mistakes.source import EditableFunction
from npformer.mistakes.syntax import Edit

TRIALS = 6000  # the largest number of edits that are tried
WORK = 2_000_000  # the largest number of calls of functions in all trials together
SECONDS = 15.0  # the limit of the search, in processor time
SLACK = 1000  # errors at these points may be larger by so much than the tolerances
SCALES = (0.1, 3.0, 10.0)  # of the points at which a repair must be right as well
MOST = 2  # edits that one sentence names
DOUBLED = "a second backward pass doubles the gradients"  # one of the results that must be right


def find_repair(draw: Draw, second: dict[str, Array], rng: Generator) -> str:
    """Return a sentence about the edits that make all gradients correct, or "" if there are none.

    Args:
        draw: A dy with its gradients at one point.
        second: Another point, at which the gradients must be correct as well.
        rng: The generator of directions.
    """
    target = draw.target
    if target.foreign and target.foreign.is_rounded:
        return ""  # within the tolerances of low precision, a wrong edit might pass
    files = target.files()
    _, cache = target.run()
    backward = trace(lambda: target.vjp(copy_tree(draw.dy), cache), files)
    forward = trace(target.run, files)
    functions = [f for code in backward.codes if (f := _editable(code)) and not _loops(f)]
    others = [f.definition for code in forward.codes if (f := _editable(code))]
    if not functions:
        return ""
    scopes = [scope_of(function.definition, others, with_parts=True) for function in functions]
    trials = min(TRIALS, WORK // (backward.calls + forward.calls))
    goal = _CorrectGradients(draw, second, rng, trials)
    search = Search(goal, [*zip(functions, scopes, strict=True)], MOST)
    if not search.is_successful:
        return ""
    search.simplify()
    return _sentence(search.made)


def _editable(code: Any) -> EditableFunction | None:
    try:
        return EditableFunction(code)
    except LookupError:
        return None


def _loops(function: EditableFunction) -> bool:
    """Return whether an edit might make a loop endless."""
    return any(isinstance(node, ast.While) for node in ast.walk(function.definition))


class _CorrectGradients:
    """The goal of correct gradients at two points, and then at points of other scales.

    At one scale, a wrong edit may be right by chance: a mask may hide what it changes.

    Args:
        draw: A dy with its gradients at one point.
        second: Another point.
        rng: The generator of directions.
        trials: The largest number of edits that are tried.
    """

    def __init__(self, draw: Draw, second: dict[str, Array], rng: Generator, trials: int) -> None:
        self._draw, self._second, self._rng, self._trials = draw, second, rng, trials
        self._points = [_Point(draw, point, rng) for point in (draw.target.tensors, second)]
        self._budget = Budget(SECONDS)

    @cached_property
    def _scaled(self) -> list["_Point"]:
        """The points of other scales at which forward is finite."""
        points = []
        for scale in SCALES:
            with contextlib.suppress(Exception):  # forward may refuse other inputs, as a decomposition does
                point = {name: scale * value for name, value in self._second.items()}
                points.append(_Point(self._draw, point, self._rng, slack=SLACK))
        return [point for point in points if np.isfinite([*point.numeric.values()]).all()]

    def right(self, before: Right | None) -> Right:
        """Return the names of the tensors whose gradients are correct, and `DOUBLED`."""
        found: set[str] = set(self._points[0].target.tensors)
        for point in self._points:
            found &= point.correct()
            if before is not None and not found > before:
                return frozenset()
        if len(found) == len(self._points[0].target.tensors) and self._points[0].accumulates():
            for point in self._scaled:
                found &= point.correct()
            if len(found) == len(self._points[0].target.tensors):
                found.add(DOUBLED)
        return frozenset(found)

    def is_reached(self, right: Right) -> bool:
        """Return whether all gradients are correct."""
        return DOUBLED in right

    def is_over(self) -> bool:
        """Return whether there were enough trials, or whether the time is over."""
        self._trials -= 1
        return self._trials < 0 or self._budget.is_over()


class _Point:
    """A point at which gradients are checked: <g, v> is the derivative along v, for each tensor."""

    def __init__(self, draw: Draw, point: dict[str, Array], rng: Generator, slack: float = 10) -> None:
        target = draw.target
        self.target, self.point, self.slack = target, point, slack
        self.tolerances = {name: draw.tolerance(name) for name in point}
        with target.moved_to(point):
            self.dy = draw_like(target.run()[0], rng)
            here = replace(draw, dy=self.dy, grads={})
            # of different sizes: with equal ones, the sums over another axis have the same product with v
            self.directions = {name: uneven_signs(rng, value.shape) for name, value in point.items()}
            self.numeric = {name: here.derivative({name: v}) for name, v in self.directions.items()}
        self.floor = max([1e-3 * abs(number) for number in self.numeric.values()] + [draw.floor])

    def correct(self) -> set[str]:
        """Return the names of the tensors whose gradients are correct now."""
        return {name for name, g in self._gradients().items() if self._is_correct(name, np.asarray(g))}

    def accumulates(self) -> bool:
        """Return whether a second backward pass doubles the gradients of the parameters."""
        once, twice = (self._gradients(times=times) for times in (1, 2))
        return all(np.allclose(twice[name], 2 * once[name]) for name in self.target.parameters)

    def _gradients(self, times: int = 1) -> Gradients:
        with self.target.moved_to(self.point):
            _, cache = self.target.run()
            run_with_other_inputs(self.target)
            return self.target.vjp(copy_tree(self.dy), cache, times=times)

    def _is_correct(self, name: str, g: Array) -> bool:
        v = self.directions[name]
        if g.shape != v.shape or g.dtype.kind != "f" or not np.isfinite(g).all():
            return False
        scale = max(float(np.sqrt((g * g).sum())), abs(self.numeric[name]), self.floor)
        return abs(float((g * v).sum()) - self.numeric[name]) <= self.slack * self.tolerances[name] * scale


def _sentence(made: list[Edit]) -> str:
    """Return the sentence of edits. They are made in the trees, so the statements are correct."""
    correct = [f"`{_text(edit.statement)}`" for edit in made if edit.statement]
    says = "; and ".join(map(str, made))
    return f"{says}; with {' and '.join(correct)} all gradients are correct" if correct else says


def _text(statement: ast.AST) -> str:
    """Return the first line of a statement, or the expression of a lambda."""
    return ast.unparse(statement.body if isinstance(statement, ast.Lambda) else statement).splitlines()[0]
