"""Situations of use in which a backward pass of PyTorch must return the same gradients.

PyTorch may give a backward pass gradients that are not contiguous, such as the expanded ones of y.sum(). It
may ask for the gradients of some inputs only, or give gradients for some outputs only. And it may
differentiate the backward pass itself, which is silently wrong where this uses numbers that the graph does
not know.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import torch

from npformer.backend import Array, is_array
from npformer.checking.check_target import scales_of
from npformer.checking.foreign.layer import Situation, WrongBackward, norm, relative, smallest_size
from npformer.checking.foreign.torch_layer import LayOut, TorchLayer, differentiable_pairs
from npformer.checking.trees import is_real, leaves, map_tree
from npformer.errors import UserError

TOLERANCE = 1e-10  # sums in another order differ by rounding errors only
SECOND = "second derivatives"  # their row, and the numbers of their differences
SECOND_TOLERANCE = 1e-5
TINY = float(np.finfo(float).tiny)
STEPS = (1e-3, 1e-4, 1e-5)
WRONG_SECOND = (
    "backward can be differentiated, with a wrong result: save only inputs and outputs, by "
    "ctx.save_for_backward, and compute with tensors, or decorate backward with @once_differentiable"
)

Gradients = dict[str, Array]
Outcome = Gradients | str  # the gradients, or what is wrong


class Trial(NamedTuple):
    """One run of the backward pass: its outcome, the right gradients, and words for the situation."""

    outcome: Outcome
    right: Gradients
    where: str


class Scale(NamedTuple):
    """The largest relative error that passes, and the smallest number by which an error is divided."""

    tolerance: float
    floor: float


class TorchLayerInUse(TorchLayer):
    """A thing of PyTorch as a layer, with the situations in which its backward pass is used."""

    def situations(self, dy: Any, grads: Gradients, *, hessian: bool) -> Iterator[Situation]:
        """Yield the errors of the backward pass in one situation after the other.

        Args:
            dy: A gradient of the output.
            grads: The gradients of all tensors for this dy, by name.
            hessian: Yield a situation for second derivatives also where a note would do.
        """
        scale = Scale(max(TOLERANCE, 16 * self.epsilon), smallest_size(dy, grads))
        again = _situation("a second backward pass", scale, _again(self, dy, grads))
        if not again.error <= again.tolerance:
            yield again
            return
        yield _situation("any layout of dy", scale, _layouts_of_dy(self, dy, grads))
        if not self.is_random:  # random numbers fill a tensor in the order of its memory
            yield _situation("any layout of inputs", scale, _layouts_of_inputs(self, dy, grads))
        yield _situation("each input alone", scale, _inputs_alone(self, dy, grads))
        if sum(is_real(part) for part in leaves(dy)) > 1:
            yield _situation("each output alone", scale, _outputs_alone(self, dy))
        yield from constant_outputs(self, grads)
        yield from second_derivatives(self, dy, hessian)


def _situation(name: str, scale: Scale, trials: Iterable[Trial]) -> Situation:
    """Return the worst outcome of several trials."""
    how = "the same gradients"
    worst = Situation(name, 0.0, how, scale.tolerance)
    for outcome, right, where in trials:
        if isinstance(outcome, str):
            return Situation(name, np.inf, how, 0.0, f"{where}: {outcome}")
        for tensor, g in outcome.items():
            error = relative([g], [right[tensor]], scale.floor)
            if not error <= max(worst.error, scale.tolerance):
                worst = Situation(
                    name, error, how, scale.tolerance, f"the gradient of {tensor} differs {where}"
                )
    return worst


def _try(layer: TorchLayer, dy: Any, **options: Any) -> Outcome:
    try:
        return layer.rerun(dy, **options)
    except (WrongBackward, UserError) as error:
        return str(error)


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy whose memory is in the order of the columns."""
    return tensor.mT.clone(memory_format=torch.contiguous_format).mT if tensor.ndim > 1 else tensor.clone()


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy that uses every second place of its memory."""
    return torch.stack([tensor, torch.zeros_like(tensor)], -1)[..., 0]


LAYOUTS = (_transposed, _strided)


def _again(layer: TorchLayer, dy: Any, grads: Gradients) -> Iterator[Trial]:
    """Run both passes again: a layer that keeps numbers fails, and would fail in all situations."""
    outcome = _try(layer, dy)
    if isinstance(outcome, dict):
        yield Trial(outcome, grads, "when it is computed again: is a buffer not cleared?")


def _layouts_of_dy(layer: TorchLayer, dy: Any, grads: Gradients) -> Iterator[Trial]:
    """Give backward a dy that is not contiguous, and the one of y.sum(), which is one number in memory."""
    for lay_out in LAYOUTS:
        other = map_tree(partial(_laid_out, lay_out), dy)
        yield Trial(_try(layer, other), grads, "for a dy that is not contiguous")
    right = _try(layer, _map_real(lambda d: np.ones(np.shape(d)), dy))
    expanded = _map_real(lambda d: torch.ones((), dtype=torch.float64).expand(np.shape(d)), dy)
    where = "for the dy of y.sum(), whose entries share one place in memory"
    if isinstance(right, dict):
        yield Trial(_try(layer, expanded), right, where)


def _laid_out(lay_out: LayOut, d: Any) -> Any:
    return lay_out(torch.from_numpy(np.array(d))) if is_real(d) else d


def _layouts_of_inputs(layer: TorchLayer, dy: Any, grads: Gradients) -> Iterator[Trial]:
    """Give the forward pass inputs that are not contiguous."""
    for lay_out in LAYOUTS:
        yield Trial(_try(layer, dy, lay_out=lay_out), grads, "for inputs that are not contiguous")


def _inputs_alone(layer: TorchLayer, dy: Any, grads: Gradients) -> Iterator[Trial]:
    """Ask for the gradient of each input alone, and for those of the parameters alone."""
    groups = [{name} for name in grads if name not in layer.parameters]
    groups += [set(layer.parameters)] if layer.parameters else []
    for group in groups if len(groups) > 1 else []:
        if any(grads[name].any() for name in group):
            yield Trial(_try(layer, dy, only=group), grads, "if the others do not require a gradient")


def _outputs_alone(layer: TorchLayer, dy: Any) -> Iterator[Trial]:
    """Give a dy for one output alone: the gradients are those for a dy of 0 for the others."""
    for kept, part in enumerate(leaves(dy)):
        if is_real(part):
            right = _try(layer, _map_others(lambda d: d * 0 if is_real(d) else d, dy, kept))
            if isinstance(right, dict):
                found = _try(layer, _map_others(lambda d: None, dy, kept))
                yield Trial(found, right, f"if only output {kept} is used")


def _map_real(function: Callable[[Any], Any], dy: Any) -> Any:
    """Apply a function to the parts of dy that are gradients."""
    return map_tree(lambda d: function(d) if is_real(d) else d, dy)


def _map_others(function: Callable[[Any], Any], dy: Any, kept: int) -> Any:
    """Apply a function to all parts of dy but one."""
    numbers = count()
    return map_tree(lambda d: d if next(numbers) == kept else function(d), dy)


def constant_outputs(layer: TorchLayer, grads: Gradients) -> Iterator[Situation]:
    """Compare outputs that have no gradient beside others: they may be the ones that should have it."""
    if not any(layer.constant):
        return
    rng = np.random.default_rng(7)
    moved = [
        x + 1e-4 * rng.standard_normal(x.shape) if is_array(x) and is_real(x) else x for x in layer.point
    ]
    before, after = (list(leaves(layer.call(layer.tensors(x), layer.settings))) for x in (layer.point, moved))
    changed = [
        i for i, constant in enumerate(layer.constant) if constant and not torch.equal(before[i], after[i])
    ]
    if not changed:
        return
    which = ", ".join(f"output {i}" for i in changed)
    if any(g.any() for g in grads.values()):
        layer.notes.append(f"{which} has no gradient and was not checked")
    else:
        why = (
            f"no gradient reaches the inputs, and {which} depends on them: is the wrong output marked as not "
            "differentiable?"
        )
        yield Situation("outputs without a gradient", np.inf, "moved inputs", 0.0, why)


def second_derivatives(layer: TorchLayer, dy: Any, hessian: bool) -> Iterator[Situation]:
    """Yield the error of the derivative of backward, or nothing where PyTorch says that there is none.

    A Function that saves intermediate results is not written to be differentiated twice. If its second
    derivatives are wrong, the report has a note.

    Args:
        layer: The layer in float64.
        dy: A gradient of the output.
        hessian: Yield the error also where a note would do.
    """
    if layer.is_rounded:
        return
    rng = np.random.default_rng(5)
    inputs = {name: x for name, x in zip(layer.input_names, layer.point, strict=True) if _is_float(x)}
    if not inputs:
        return
    scales = {name: scales_of(x) for name, x in inputs.items()}
    v = {name: scale * rng.standard_normal(scale.shape) for name, scale in scales.items()}
    scales |= {name: scales_of(parameter.value) for name, parameter in layer.parameters.items()}
    numeric, uncertainty = _by_differences(layer, dy, v, scales)
    found = _by_autograd(layer, dy, v)
    if found is None:
        return
    size = max(_size(numeric, scales), _size(found, scales), 1e-3 * _size(layer.rerun(dy), scales), TINY)
    error = _size({name: numeric[name] - found[name] for name in numeric}, scales) / size
    if uncertainty > 1e-3 * size:
        return  # near a kink the differences say nothing
    tolerance = max(SECOND_TOLERANCE, 10 * uncertainty / size)
    if error > tolerance and not hessian and layer.saves_intermediates:
        layer.notes.append(f"second derivatives are wrong (hessian=True checks them): {WRONG_SECOND}")
        return
    why = "" if error <= tolerance else WRONG_SECOND
    yield Situation(SECOND, error, "the derivative of backward", tolerance, why)


def _is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _size(gradients: dict[str, Array], scales: dict[str, Array]) -> float:
    """Return the norm of gradients in units of the output, whatever the units of each tensor are."""
    return norm(g * scales[name] for name, g in gradients.items())


def _by_differences(
    layer: TorchLayer, dy: Any, v: dict[str, Array], scales: dict[str, Array]
) -> tuple[dict[str, Array], float]:
    """Return the derivative of the gradients along v, and how far two steps differ."""
    best: tuple[dict[str, Array], float] = ({}, np.inf)
    for h in STEPS:
        wide, narrow = (_central(layer, dy, v, step) for step in (h, h / 2))
        error = _size({name: wide[name] - narrow[name] for name in wide}, scales)
        if error < best[1] or not best[0]:
            best = {name: (4 * narrow[name] - wide[name]) / 3 for name in wide}, error
    return best


def _central(layer: TorchLayer, dy: Any, v: dict[str, Array], h: float) -> dict[str, Array]:
    above, below = (layer.rerun(dy, moved={name: s * h * v[name] for name in v}) for s in (1, -1))
    return {name: (above[name] - below[name]) / (2 * h) for name in above}


def _by_autograd(layer: TorchLayer, dy: Any, v: dict[str, Array]) -> dict[str, Array] | None:
    """Return the derivative of <g, v> by every tensor, which is the same by symmetry, or None if refused."""
    _, graph = layer.forward(*layer.point, **layer.settings)
    leaves = graph.computation.leaves
    pairs = list(differentiable_pairs(graph.outputs, dy))
    if not pairs:
        return None
    outputs, along = zip(*pairs, strict=True)
    along = tuple(d.detach().clone().requires_grad_() for d in along)
    try:
        inputs = [leaves[name] for name in v]
        grads = torch.autograd.grad(outputs, inputs, along, create_graph=True, allow_unused=True)
        total = sum(
            ((g * torch.from_numpy(v[n])).sum() for n, g in zip(v, grads, strict=True) if g is not None)
        )
        if not isinstance(total, torch.Tensor) or not total.requires_grad:
            returned: Any = [None] * len(leaves)
        else:
            returned = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return None  # once_differentiable, or a derivative that PyTorch does not have
    return {
        name: np.zeros(t.shape) if g is None else g.detach().numpy()
        for (name, t), g in zip(leaves.items(), returned, strict=True)
    }
