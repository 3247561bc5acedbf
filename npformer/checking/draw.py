"""Draw: a random point and a random dy, with the gradients there and the derivatives to compare them with."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, Generator
from npformer.checking.analytic import RADII, takes_complex
from npformer.checking.check_target import TOLERANCE, CheckTarget, Gradients
from npformer.checking.derivative import (
    EPSILON,
    STEP,
    derivative_along,
    extrapolated,
    one_sided,
    signs,
    step_along,
    typical,
)
from npformer.checking.trees import copy_tree, draw_like, inner, map_tree, norm

NEARBY = 1e-13  # the relative distance of points where rounding errors are drawn anew
POINTS = 32  # the number of these points: at many of them, nothing is rounded
LARGE = 1e-4  # relative to dy: rounding errors that are larger are rare, so larger errors count as mistakes
SHRINKS = (1.0, 0.7, 0.4, 0.2)  # factors of the steps of differences that are compared
HIDDEN = 1e-2  # the relative step at which a kink is looked for among rounding errors
KINK = 1e-3  # relative: one-sided derivatives that differ by more do so because of a kink
JUMP = 1e6  # times the rounding error of the output: a larger change of the output is no rounding error
TOGETHER = 8  # the number of random directions along which several entries at kinks are checked together
TIMES = 10  # two numbers agree if they differ by no more than this many times their rounding errors


class Kinks(NamedTuple):
    """The entries of a tensor at a kink, and whether the gradient is one that the kinks allow."""

    entries: list[int]
    alone: bool = True  # along each entry alone
    together: bool = True  # along several entries together


@dataclass(frozen=True)
class Options:
    """The options of a check. See gradcheck."""

    method: str = "complex"
    tolerance: float | None = None
    randomize: bool = True
    hessian: bool = False

    def tolerance_of(self, method: str) -> float:
        """Return the largest error that passes. The option holds for the method that was asked for."""
        return TOLERANCE[method] if self.tolerance is None or method != self.method else self.tolerance


@dataclass
class Draw:
    """A dy with the gradients that backward returns for it at the present point of the target.

    The unit of a tensor is a number, or a number for each entry. A direction of the tensor has entries of the
    size of its unit, and the norm of its gradient is measured in the reciprocal unit, so that the verdict
    does not depend on the scale of the tensor.
    """

    target: CheckTarget
    dy: Any
    grads: Gradients
    floor: float  # the smallest number by which an error is divided
    methods: dict[str, str]  # "complex" or "difference", for each tensor
    options: Options
    units: dict[str, Any]

    def length(self, *tensors: str) -> float:
        """Return the norm of the gradients of some tensors together, in their units."""
        return norm([np.asarray(self.grads[name], np.float64) * self.units[name] for name in tensors])

    def derivative(self, directions: dict[str, Array], shrink: float = 1.0) -> float:
        """Return the derivative of <dy, y> along directions, each by the method of its tensor.

        Args:
            directions: A dict from the name of a tensor to a direction of its shape.
            shrink: A factor of the steps of differences.
        """
        total = 0.0
        for method in sorted({self.methods[name] for name in directions}):
            part = {name: v for name, v in directions.items() if self.methods[name] == method}
            if method == "complex":
                total += inner(self.dy, derivative_along(self.target, part))
            else:
                total += inner(self.dy, extrapolated(self.target, part, shrink)[0])
        return total

    def product(self, directions: dict[str, Array]) -> float:
        """Return <g, v>, the sum over the tensors of the directions."""
        return sum(float((np.asarray(self.grads[name]) * v).sum()) for name, v in directions.items())

    def error(self, directions: dict[str, Array]) -> float:
        """Return |<g, v> - derivative along v|, divided by the norm of g or by the floor."""
        numeric, analytic = self.derivative(directions), self.product(directions)
        return abs(numeric - analytic) / self._size(directions, numeric)

    def tolerance(self, tensor: str) -> float:
        """Return the largest error of the gradient of a tensor that passes."""
        method = self.methods[tensor]
        if self.options.tolerance is not None and method == self.options.method:
            return self.options.tolerance
        return self.target.tolerance(tensor, method)

    def hidden_error(self, directions: dict[str, Array]) -> float:
        """Return the largest error, as `error` measures it, that rounding errors of forward explain.

        Differences with other steps have other rounding errors, and no step shows what is smaller than the
        rounding errors of the output. If they are large, they may hide a kink, so <g, v> may also lie between
        the one-sided derivatives; then the result is infinite. And where they hide a small part that takes no
        complex numbers, the complex step is not exact.

        Args:
            directions: A dict from the name of a tensor to a direction of its shape.
        """
        product, rounding = self.product(directions), TIMES * self._rounding()
        if "difference" not in map(self.methods.get, directions):
            noise = rounding / step_along(directions, self.target.scales, RADII[0])
            return noise / self._size(directions, self.derivative(directions))
        found = [self.derivative(directions, shrink) for shrink in SHRINKS]
        noise = TIMES * float(np.ptp(found)) + rounding
        if abs(found[0] - product) > noise and self._sides_are_rounded(directions):
            least, most = one_sided(self.target, self.dy, directions, HIDDEN)
            if least - noise <= product <= most + noise:
                return np.inf
        return noise / self._size(directions, found[0])

    def _size(self, directions: dict[str, Array], numeric: float) -> float:
        """Return the number by which an error along directions is divided."""
        return max(self.length(*directions), abs(numeric), self.floor)

    def is_rounding(self, directions: dict[str, Array], rng: Generator) -> bool:
        """Return whether <g, v> and the derivative differ by no more than their rounding errors.

        A gradient that is 0 in exact arithmetic is the rounding error of terms that cancel. The error of such
        a gradient cannot be divided by its norm. At points nearby, along directions nearby, both numbers are
        rounded differently, so their changes there are the size of their rounding errors.
        """
        if self.target.foreign and self.target.foreign.is_rounded:
            return self._is_rounding_of_zero(directions)
        here = abs(self.derivative(directions) - self.product(directions))
        if here > LARGE * norm(self.dy):
            return False
        pairs = []
        for nearby, dy in points_nearby(self.target, self.dy, rng):
            with self.target.moved_to(nearby):
                grads = self.target.vjp(copy_tree(dy), self.target.run()[1])
                there = replace(self, dy=dy, grads=grads)
                near = {name: _moved(v, rng) for name, v in directions.items()}
                pairs.append((there.derivative(near), there.product(near)))
        numeric, analytic = TIMES * np.ptp(np.array(pairs), axis=0)
        return bool(here <= numeric + analytic)

    def _is_rounding_of_zero(self, directions: dict[str, Array]) -> bool:
        """Return whether the derivative is 0, and the gradient is small beside those of the other tensors."""
        largest = 1e3 * self.floor
        tolerance = max(self.tolerance(name) for name in directions)
        return abs(self.derivative(directions)) <= 1e-8 * largest and (
            self.length(*directions) <= tolerance * largest
        )

    def crosses_a_kink(self, directions: dict[str, Array]) -> bool:
        """Return whether the derivatives along directions differ from below and from above."""
        if "difference" not in map(self.methods.get, directions):
            return False
        return self._gap(directions) > KINK * max(self.length(*directions), self.floor) and (
            not self._sides_are_rounded(directions)
        )

    def _gap(self, directions: dict[str, Array], step: float = STEP["difference"]) -> float:
        """Return the length of the interval of one-sided derivatives."""
        least, most = one_sided(self.target, self.dy, directions, step)
        return most - least

    def _sides_are_rounded(self, directions: dict[str, Array]) -> bool:
        """Return whether rounding errors are most of the difference of the one-sided derivatives.

        With a larger step, the part of a kink stays the same, and the part of rounding errors is smaller. So
        is that of a jump, but a jump is much larger than rounding errors.
        """
        gap = self._gap(directions)
        if gap * step_along(directions, self.target.scales, STEP["difference"]) > JUMP * self._rounding():
            return False
        return self._gap(directions, 100 * STEP["difference"]) < 0.3 * gap

    def _rounding(self) -> float:
        """Return the size of the rounding error of <dy, y> if y itself is rounded, and nothing before it."""
        y = self.target.run()[0]
        return EPSILON * norm(map_tree(lambda d, part: d * part, self.dy, y))

    def at_kinks(self, tensor: str, tolerance: float, rng: Generator) -> Kinks:
        """Find the entries at a kink, and compare their gradient with the one-sided derivatives.

        Args:
            tensor: The name of the tensor.
            tolerance: The largest error that passes, relative to the norm of the gradient.
            rng: The generator of directions.
        """
        shape = self.target.tensors[tensor].shape
        unit = np.broadcast_to(self.units[tensor], shape)
        scale = max(self.length(tensor), self.floor)
        slack = max(tolerance, 1e-6) * scale

        def is_between(v: Array, slack: float) -> tuple[bool, bool]:
            """Return whether the gradient along v is one that a kink allows, and whether there is a kink."""
            least, most = one_sided(self.target, self.dy, {tensor: v})
            along = self.product({tensor: v})
            is_kink = most - least > KINK * scale and not self._sides_are_rounded({tensor: v})
            return least - slack <= along <= most + slack, is_kink

        kinks: list[int] = []
        for entry in range(unit.size):
            v = np.where(np.arange(unit.size).reshape(shape) == entry, unit, 0)
            if abs(self.derivative({tensor: v}) - self.product({tensor: v})) > slack:
                if not all(is_between(v, slack)):
                    return Kinks(kinks, alone=False)
                kinks.append(entry)
        # a gradient that is possible for each entry alone may count a tie of two entries twice
        several = [np.ones(shape), *(signs(rng, shape) for _ in range(TOGETHER))]
        return Kinks(kinks, together=all(is_between(v * unit, 10 * slack)[0] for v in several))


def make_draw(target: CheckTarget, methods: dict[str, str], options: Options, rng: Generator) -> Draw:
    """Draw a dy and compute the gradients for it.

    Args:
        target: The forward and backward pass.
        methods: "complex" or "difference", for each tensor.
        options: The options of the check.
        rng: The generator of dy.
    """
    y, cache = target.run()
    dy = draw_like(y, rng)
    run_with_other_inputs(target)  # this overwrites activations that a layer stores in its attributes
    grads = target.vjp(copy_tree(dy), cache)
    scales = target.scales
    units = {n: scales[n] if methods[n] == "difference" else typical(scales[n]) for n in grads}
    draw = Draw(target, dy, grads, 0.0, methods, options, units)
    numbers = [draw.length(name) for name, g in grads.items() if _is_gradient(g, units[name])]
    return replace(draw, floor=1e-3 * max([*numbers, np.finfo(float).tiny]))


def _is_gradient(g: Any, unit: Any) -> bool:
    fits = np.ndim(unit) == 0 or np.shape(g) == np.shape(unit)
    return np.asarray(g).dtype.kind in "fiub" and fits


def run_with_other_inputs(target: CheckTarget) -> None:
    """Run forward with other inputs, so that a layer that stores activations in attributes fails."""
    with contextlib.suppress(Exception):  # forward may refuse such inputs, as a Cholesky decomposition does
        target.run({name: 0.5 - target.tensors[name] for name in target.real_inputs})


def points_nearby(target: CheckTarget, dy: Any, rng: Generator) -> Iterator[tuple[dict[str, Array], Any]]:
    """Yield points and gradients of the output that differ from the present ones by rounding errors.

    Args:
        target: The forward pass, at the present point.
        dy: The present gradient of the output.
        rng: The generator of the differences.
    """
    for _ in range(POINTS):
        point = {name: _moved(value, rng) for name, value in target.tensors.items()}
        yield point, map_tree(lambda part: _moved(part, rng), dy)


def _moved(array: Any, rng: Generator) -> Any:
    return array * (1 + NEARBY * rng.standard_normal(np.shape(array)))


def choose_methods(target: CheckTarget, rng: Generator, method: str) -> dict[str, str]:
    """Return "complex" for each tensor along which forward takes complex numbers, and "difference" otherwise.

    The derivatives by the complex step and by differences are compared, first along all tensors at once. If
    they differ, they are compared for each tensor.

    Args:
        target: The forward pass.
        rng: The generator of directions.
        method: The method that is asked for.
    """
    every = {name: rng.standard_normal(scale.shape) * scale for name, scale in target.scales.items()}
    if method == "difference" or takes_complex(target, every):
        return dict.fromkeys(every, method)
    return {n: "complex" if takes_complex(target, {n: v}) else "difference" for n, v in every.items()}
