"""gradcheck: compare a backward pass with its forward pass, tensor by tensor.

For a random dy, the backward pass computes the gradient g of <dy, y> with respect to every tensor. For a
random direction v of entries ±1, the derivative of <dy, y> along v is computed from the forward pass. It must
equal <g, v>. One evaluation therefore checks all entries of a tensor at once. If the check fails, bisection
finds the first wrong entry.

The error is |<g, v> - derivative| divided by the Euclidean norm of g, which is the typical size of <g, v>. If
g is 0 in exact arithmetic (as for the bias of the keys under a softmax), both sides are rounding errors. Then
the error is divided by a thousandth of the largest norm of a gradient.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from npformer.backend import Array, Generator, is_array
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import METHOD_NAMES, uneven_signs
from npformer.checking.draw import Draw, Options, choose_methods, make_draw
from npformer.checking.foreign import ForeignLayer, WrongBackward, adapt
from npformer.checking.preparation import choose_point, low_precision, make_deterministic, second_point
from npformer.checking.properties import ACCUMULATE, property_rows
from npformer.checking.repair import find_repair
from npformer.checking.report import CheckRow, Report
from npformer.checking.situations import situation_rows
from npformer.checking.surroundings import other_arrays
from npformer.checking.tensor_rows import tensor_rows
from npformer.checking.trees import copy_tree, leaves
from npformer.errors import UserError, quantity
from npformer.mistakes.patterns import UNKNOWN
from npformer.nn.module import Module
from npformer.validation import is_number, require_choice, require_index, short

# the spawn key of the checker's own stream of random numbers, which no seed of a user produces: inputs that a
# user draws with the same seed must not equal dy
STREAM = (0x6772_6164,)
OTHER_STATES = 8  # the number of further states of the random generators at which a random layer is checked


def gradcheck(
    thing: Any,
    *inputs: Any,
    method: str = "complex",
    tolerance: float | None = None,
    seed: int = 0,
    name: str | None = None,
    randomize: bool = True,
    hessian: bool = False,
    reference: Any = None,
    library: Literal["torch", "jax"] | None = None,
    **settings: Any,
) -> Report:
    """Check the backward pass of a layer, or of a pair of functions (f, f_backward).

    Every gradient is compared with a derivative of the forward pass along a random direction:

        <g, v>  =  d/dh <dy, forward(x + h v)>   at h = 0

    Four properties that hold for every backward pass are checked as well: it is the adjoint of the
    derivative, it is linear in dy, it adds to the gradients of the parameters, and it modifies neither dy nor
    the cache. A layer that stores activations in its attributes instead of the cache fails.

    Example:
        >>> import numpy as np, npformer
        >>> rng = np.random.default_rng(0)
        >>> layer = npformer.nn.Linear(4, 3, rng=rng)
        >>> npformer.gradcheck(layer, rng.standard_normal((2, 4))).ok
        True

    Args:
        thing: An object with `forward(*inputs, **settings) -> (y, cache)` and `backward(dy, cache)` -> the
            gradients of the real inputs in their order, or a tuple of two such functions. backward adds the
            gradients of parameters to their .grad. Or a torch.autograd.Function, an nn.Module, a function of
            PyTorch tensors, or a function of JAX arrays, such as one with custom_vjp or custom_jvp.
        inputs: The arguments of forward. Arrays of floats, of any shape, are checked. Token ids, masks and
            other arguments are passed on.
        method: "complex" is exact to rounding, and the forward pass must accept complex numbers. "difference"
            uses central differences, which are correct to about nine digits.
        tolerance: The largest error that passes. The default is 1e-11 for "complex" and 1e-6 for
            "difference".
        seed: The seed of the random directions.
        name: The name in the report. The default is the name of the class or of the function.
        randomize: Start gains and biases at random values, since 1 and 0 hide mistakes.
        hessian: Also check that second derivatives are symmetric. backward must accept complex numbers.
            For PyTorch, check that the backward pass can be differentiated.
        reference: For a function of PyTorch or JAX in float32, float16 or bfloat16: the same function in
            float64. The gradients may differ from its derivatives by the roundings of the data type.
        library: "torch" or "jax" for a function that takes NumPy arrays as tensors of this library. It is
            needed where neither the thing nor an input tells the library.
        settings: Keyword arguments of forward. rng=7 seeds a new generator for each evaluation.

    Returns:
        A Report with .ok, .rows, .failures and .worst. Its string is a table with one row for each tensor and
        each property, and with a diagnosis for each incorrect gradient.

    Raises:
        UserError: If a setting is impossible, if there is nothing to check, or if forward or backward does
            not follow the protocol above.

    Source: Squire and Trapp 1998 (complex step).
    """
    require_choice("method", method, tuple(METHOD_NAMES))
    if tolerance is not None and not (is_number(tolerance) and tolerance > 0):
        raise UserError(f"tolerance is {short(tolerance)}: it must be a number above 0")
    rng = generator_of(seed)
    thing, inputs = adapt(thing, inputs, reference, library=library)
    target = CheckTarget(thing, inputs, settings, randomize=randomize, rng=rng)
    check = _Check(Report(name or _name(thing)), target, Options(method, tolerance, randomize, hessian), rng)
    with np.errstate(all="ignore"):  # a NaN is a row of the report, and needs no warnings
        try:
            note = make_deterministic(target, thing, rng)
            check.run()
        except WrongBackward as error:
            check.report.rows.append(error.row(check.report.name))
        finally:
            if target.generators is not None:
                target.generators.give_back()
        check.report.notes += [*filter(None, [note]), *coverage_notes(target, thing)]
    return check.report


def _name(thing: Any) -> str:
    if isinstance(thing, ForeignLayer):
        return thing.name
    return str(thing[0].__name__) if isinstance(thing, tuple) else type(thing).__name__


def generator_of(seed: int) -> Generator:
    """Return the generator of the checker for this seed.

    Args:
        seed: A whole number of 0 or more.

    Raises:
        UserError: If the seed is not a whole number of 0 or more.
    """
    sequence = np.random.SeedSequence(require_index("seed", seed), spawn_key=STREAM)
    return np.random.Generator(np.random.Philox(sequence))


@dataclass
class _Check:
    """A check that is under way. It adds rows and notes to the report."""

    report: Report
    target: CheckTarget
    options: Options
    rng: Generator

    def run(self) -> None:
        """Check all tensors and properties."""
        target, report = self.target, self.report
        why = low_precision(choose_point(target))
        if why:
            report.rows.append(CheckRow(report.name, "y", np.inf, "dtype of the output", 0.0, None, why))
            return
        methods = choose_methods(target, self.rng, self.options.method)
        others = [name for name, method in methods.items() if method != self.options.method]
        if others:
            report.notes.append(
                f"forward does not take complex numbers for {', '.join(others)}: checked by differences"
            )
        draw = make_draw(target, methods, self.options, self.rng)
        report.rows += tensor_rows(report.name, draw, self.rng)
        second = target.tensors
        if self.options.randomize:
            second = second_point(target, self.rng, off_kinks="difference" in methods.values())
        if all(row.error != np.inf for row in report.rows):  # else a gradient has another shape or type
            report.rows += property_rows(report.name, draw, second, self.rng)
            if not self._wrong_tensors() and all(row.ok for row in report.rows if row.tensor == ACCUMULATE):
                report.rows += situation_rows(report.name, draw)
            self._check_again(second, methods)
        self._name_the_line(draw, second)

    def _check_again(self, second: dict[str, Array], methods: dict[str, str]) -> None:
        """Check a random layer at other states of its generators, and others if only a property fails."""
        states = OTHER_STATES if self.target.generators else int(not self.report.ok)
        for _ in range(states):
            if self._wrong_tensors():
                return
            if self.target.generators:
                self.target.generators.draw_states(self.rng)
            with self.target.moved_to(second):
                again = make_draw(self.target, methods, self.options, self.rng)
                rows = tensor_rows(self.report.name, again, self.rng, uneven_signs)
            if not all(row.ok for row in rows):
                self.report.rows[: len(rows)] = rows

    def _wrong_tensors(self) -> list[int]:
        """Return the numbers of the rows of incorrect gradients."""
        return [i for i, row in enumerate(self.report.rows[: len(self.target.tensors)]) if not row.ok]

    def _name_the_line(self, draw: Draw, second: dict[str, Array]) -> None:
        """Add the line of the mistake and its repair to the first incorrect gradient."""
        for number in self._wrong_tensors()[:1]:
            repair = find_repair(draw, second, self.rng)
            row = self.report.rows[number]
            known = "" if row.diagnosis == UNKNOWN and repair else row.diagnosis
            self.report.rows[number] = replace(row, diagnosis="; ".join(filter(None, [known, repair])))


def coverage_notes(target: CheckTarget, thing: Any) -> list[str]:
    """Return how many tensors were checked, and which arrays were not checked."""
    shapes = [f"{name} {np.shape(x)}" for name, x in target.inputs.items() if is_array(x)]
    where = f", with inputs of these shapes alone: {', '.join(shapes)}" if shapes else ""
    notes = [f"{quantity(len(target.tensors), 'tensor')} checked{where}"]
    notes += target.foreign.notes if target.foreign else []
    found = {id(parameter) for parameter in thing.parameters()} if isinstance(thing, Module) else set()
    hidden = [name for name, parameter in target.parameters.items() if id(parameter) not in found]
    if hidden and isinstance(thing, Module):
        notes.append(
            f"training does not find {', '.join(hidden)}: hold each parameter in an attribute of a Module, "
            "or in a list, a tuple or a dict there"
        )
    others = other_arrays(thing, target.settings)
    unchecked = [f"{name} {array.shape}" for name, array in others if _takes_part(target, array)]
    if unchecked:
        notes.append(
            f"forward also uses arrays that are not parameters and were not checked: {', '.join(unchecked)}"
        )
    return notes


def _takes_part(target: CheckTarget, array: Array) -> bool:
    """Return whether the output changes with an array."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return False
    before, kept = copy_tree(target.run()[0]), array.copy()
    try:
        array += 1e-3
        after = target.run()[0]
        return not all(np.array_equal(a, b) for a, b in zip(leaves(before), leaves(after), strict=True))
    finally:
        array[...] = kept
