"""Forward passes that are stairs: flat on short ways, and straight across many steps.

np.round at inputs of 1e8 is such a function, and so is (x + 1e6) - 1e6 at inputs of 1e-8, where the steps are
the rounding errors of the sum. The derivative of the first one is 0, as on each step, and that of the second
one is 1, as across the steps. A difference finds either slope, depending on its step.

Rounding errors are 2²⁹ times as large in float32. If an output in float32 is much closer to the one in
float64 than steps of rounding errors allow, the steps belong to the function.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import EPSILON, FAR_STEPS, extrapolated, step_along
from npformer.checking.trees import is_real, leaves, norm

WIDE = (1e-2, *FAR_STEPS)  # relative to the scales: moves across many steps
LONG = 1e-1  # relative to the scales: a move on which only steps that begin here are flat
SHORT = (LONG, 1e-7, 1e-9, 1e-11, 1e-13)  # relative to the scales: moves on one step
PARTS = (0.6, 0.25)  # of a move on one step: rounding errors find other slopes by these
LEAST = 1e-12  # relative to a wide move: shorter moves from its end are lost in the roundings of the input
UNLIKE = 0.5  # relative: the slopes across the steps and on a step differ by more
STRAIGHT = 5e-2  # relative: the slopes of wide moves differ by less
NOISE = 0.25  # relative: the part of a slope that is a rounding error of the output is smaller
COARSER = float(np.finfo(np.float32).eps) / EPSILON
CLOSE = 1e-2  # relative to the errors in float32 that steps of rounding errors would have
NEAR = 0.5  # relative to the distance of the two slopes: a difference found the one that is nearer
FEW = 0.5  # of the outputs: rounding errors are large at small entries, so a few slopes may be wrong


def misled_by_stairs(target: CheckTarget, directions: dict[str, Array], derivative: Any = None) -> bool:
    """Return whether forward forms stairs along directions, and a difference finds the wrong slope of them.

    Args:
        target: The forward pass.
        directions: A dict from the name of a tensor to a direction of its shape.
        derivative: A derivative of the output along the directions that may be exact: then only outputs with
            the derivative 0 are looked at.
    """
    unknown = None if derivative is None else _vector(derivative) == 0  # the outputs that may be stairs
    if unknown is not None and not unknown.any():
        return False
    line = _Line(target, directions)
    unknown = np.full(line.here.shape, fill_value=True) if unknown is None else unknown
    for wide in WIDE:
        h = wide * line.at_scale
        below, above = (line.slopes_from_here((side * h, 2 * side * h)) for side in (-1, 1))
        differ = _larger(below[0], above[0]) <= line.rounding / h  # no slope is seen yet
        for number in (n for n, short in enumerate(SHORT) if short < wide):
            move = SHORT[number] * line.at_scale
            unlike = line.are_unlike([below[0], above[0]], line.on_steps[number], move)
            differ = differ | unlike
            steps = line.find_steps(line.steady(unknown & unlike, move), below, above, number, h)
            if steps.any() and line.is_misled(steps, below[0], above[0], number, h):
                return True
            unknown = unknown & ~steps
        unknown = unknown & differ
        if not unknown.any():
            break
    return False


class _Line:
    """The outputs of a forward pass along directions of its tensors, as one vector."""

    def __init__(self, target: CheckTarget, directions: dict[str, Array]) -> None:
        self.target, self.directions = target, directions
        self.at_scale = step_along(directions, target.scales, 1.0)
        self.here = self.output(0.0)
        self.rounding = 4 * EPSILON * np.abs(self.here)
        self.on_steps = [self.slope(0.0, short * self.at_scale) for short in SHORT]

    def point(self, move: float) -> dict[str, Array]:
        """Return the tensors after a move along the directions."""
        return {name: self.target.tensors[name] + move * v for name, v in self.directions.items()}

    def output(self, move: float) -> Array:
        """Return the output after a move."""
        return _vector(self.target.run(self.point(move))[0])

    def slope(self, place: float, move: float) -> Array:
        """Return the central difference at a place, by moves of this length."""
        return (self.output(place + move) - self.output(place - move)) / (2 * move)

    def slopes_from_here(self, moves: Iterable[float]) -> list[Array]:
        """Return the slope from the present point to the one after each move."""
        return [(self.output(move) - self.here) / move for move in moves]

    def are_unlike(self, across: list[Array], on_a_step: Array, move: float) -> Array:
        """Return where one of the slopes differs from that of a move, and not by its rounding errors."""
        found = np.full(on_a_step.shape, fill_value=False)
        for slope in across:
            size = _larger(slope, on_a_step)
            found |= (self.rounding / move < NOISE * size) & (np.abs(on_a_step - slope) > UNLIKE * size)
        return found

    def steady(self, possible: Array, move: float) -> Array:
        """Return where shorter moves find the slope of a move, as on one step, and not rounding errors."""
        if possible.any():
            slope = self.slope(0.0, move)
            for shorter in (self.slope(0.0, part * move) for part in PARTS):
                possible = possible & (np.abs(shorter - slope) <= UNLIKE * _larger(shorter, slope))
        return possible

    def find_steps(
        self, possible: Array, below: list[Array], above: list[Array], number: int, h: float
    ) -> Array:
        """Return which outputs are stairs: straight on each side, and flat at several places.

        Args:
            possible: Which outputs may be stairs.
            below: The slopes across many steps, by two moves below the present point. They differ from those
                above it if a kink lies between.
            above: The slopes by two moves above it.
            number: The index in SHORT of a move on one step.
            h: The shorter move across many steps.
        """
        steps = possible
        if SHORT[number] == LONG:
            steps = steps & (self.on_steps[number] == 0) & ((below[0] == 0) != (above[0] == 0))
        for place, side in ((-h, below), (h, above)):  # one flat part alone is a kink or a bend
            if steps.any():
                move = max(SHORT[number] * self.at_scale, LEAST * h)
                is_zero = (side[0] == 0) & (SHORT[number] == LONG)  # one side of a ReLU
                size = _larger(side[0], self.on_steps[number])
                flat = np.abs(self.slope(place, move) - side[0]) > UNLIKE * size
                steps = steps & (flat | is_zero) & (np.abs(side[0] - side[1]) <= STRAIGHT * size)
        return steps

    def is_misled(self, steps: Array, below: Array, above: Array, number: int, h: float) -> bool:
        """Return whether a difference finds the wrong slope of outputs that are stairs.

        Args:
            steps: Which outputs are stairs.
            below: The slopes across many steps, below the present point.
            above: The slopes across many steps, above it.
            number: The index in SHORT of a move on one step.
            h: A move across many steps.
        """
        found = _vector(extrapolated(self.target, self.directions)[0])
        move, on_a_step = SHORT[number] * self.at_scale, self.on_steps[number]
        apart = [np.abs(side - on_a_step) for side in (below, above)]
        farther = _larger(*apart)
        if self._are_rounding(h, steps, CLOSE * farther * min(COARSER * move, h)):
            off = (np.abs(found - below) > NEAR * apart[0]) | (np.abs(found - above) > NEAR * apart[1])
            return bool(off[steps].mean() > FEW)
        if number + 1 < len(SHORT):  # a shorter move seldom crosses an edge
            finer = self.on_steps[number + 1]
            is_clear = self.are_unlike([above], finer, SHORT[number + 1] * self.at_scale)
            on_a_step = np.where(is_clear, finer, on_a_step)
        return bool((np.abs(found - on_a_step) > NEAR * farther)[steps].any())

    def _are_rounding(self, h: float, steps: Array, least: Array) -> bool:
        """Return whether rounding errors of forward explain outputs that are stairs.

        Args:
            h: A move after which the outputs are others.
            steps: Which outputs are stairs.
            least: The smallest errors in float32 that rounding errors of this size would have.
        """
        tensors = self.target.tensors | self.point(h)
        point = {name: value.astype(np.float32) for name, value in tensors.items()}
        try:
            rough = self.target.run(point)[0]
            fine = self.target.run({name: value.astype(np.float64) for name, value in point.items()})[0]
        except Exception:  # forward may refuse float32
            return False
        if any(np.asarray(part).dtype != np.float32 for part in leaves(rough) if is_real(part)):
            return False  # forward computes in float64, which tells nothing about rounding errors
        return not norm((_vector(rough) - _vector(fine))[steps]) <= norm(least[steps])


def _larger(a: Array, b: Array) -> Array:
    return np.maximum(np.abs(a), np.abs(b))


def _vector(tree: Any) -> Array:
    """Return the real numbers of all outputs, one after the other."""
    return np.concatenate([np.ravel(np.asarray(part, float)) for part in leaves(tree) if is_real(part)])
