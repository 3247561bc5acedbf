"""Second derivatives of PyTorch: the derivative of the backward pass, where it is differentiable."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from npformer.backend import Array
from npformer.checking.foreign.layer import Situation, norm
from npformer.checking.foreign.torch_layer import TorchLayer, differentiable_pairs
from npformer.checking.scales import scales_of

NAME, HOW = "second derivatives", "the derivative of backward"
TOLERANCE = 1e-5
TINY = float(np.finfo(float).tiny)
STEPS = (1e-3, 1e-4, 1e-5)
WHY = (
    "backward can be differentiated, with a wrong result: save only inputs and outputs, by "
    "ctx.save_for_backward, and compute with tensors, or decorate backward with @once_differentiable"
)


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
    tolerance = max(TOLERANCE, 10 * uncertainty / size)
    if error > tolerance and not hessian and layer.saves_intermediates:
        layer.notes.append(f"second derivatives are wrong (hessian=True checks them): {WHY}")
        return
    yield Situation(NAME, error, HOW, tolerance, "" if error <= tolerance else WHY)


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
