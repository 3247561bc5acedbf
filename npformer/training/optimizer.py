"""The optimizers Adam, AdamW and Muon, schedules and gradient clipping, on a model's flat buffers."""

import math
from collections.abc import Callable
from typing import Any

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.adam import decay_weights
from npformer.functional.muon import orthogonalize
from npformer.kernels import adam_update
from npformer.nn.module import Parameter
from npformer.validation import require_count


class Adam:
    """The optimizer Adam. All parameters lie in one buffer, so that one loop updates them all.

    m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,
    value -= lr · (m / (1 - β1^t)) / (sqrt(v / (1 - β2^t)) + eps), where t is the number of the step, from 1.

    Args:
        model: The model, whose parameters are moved into one buffer if they are not yet.
        betas: (β1, β2).
        eps: The small number in the denominator.

    Source: Kingma and Ba 2015; Vaswani et al. 2017, section 5.3 (β1 = .9, β2 = .98, eps = 1e-9).
    """

    def __init__(self, model: Any, *, betas: tuple[float, float] = (0.9, 0.98), eps: float = 1e-9) -> None:
        if model.values is None:
            model.flatten()
        self.model, self.betas, self.eps = model, betas, eps
        xp = array_module(model.values)
        self.m = xp.zeros_like(model.values)  # (P,) moving mean of the gradients
        self.v = xp.zeros_like(model.values)  # (P,) moving mean of their squares
        self.t = 0

    def step(self, lr: float, over: Callable[[Callable[[slice], Any], int], Any] | None = None) -> None:
        """Update the parameters. The gradients are not modified.

        Args:
            lr: The learning rate.
            over: A function over(update, size) that calls update(part) for slices of range(size), so that
                threads can share the work. The slices together cover the range. By default, one slice does.
        """
        self.t += 1
        size = len(self.model.values)
        if over is None:
            self._update(slice(0, size), lr)
        else:
            over(lambda part: self._update(part, lr), size)

    def _update(self, part: slice, lr: float) -> None:
        """Update a part of the buffer of the parameters."""
        values, grads, m, v = self.model.values[part], self.model.grads[part], self.m[part], self.v[part]
        adam_update(values, grads, m, v, lr, self.t, self.betas, self.eps)


def is_matrix(name: str, parameter: Parameter) -> bool:
    """Return True for weights of linear maps and for tables of embeddings, and False for gains and biases."""
    return len(parameter.shape) > 1


class AdamW(Adam):
    """Adam with decoupled weight decay, which acts on one group of the parameters.

    value -= lr λ value for the parameters that decay, then Adam's update for all. Gains and biases do not
    decay by default: a decay would move gains from 1, where they change nothing, to 0, where they erase their
    input.

    Args:
        model: The model, whose parameters are moved into one buffer if they are not yet.
        betas: (β1, β2).
        eps: The small number in the denominator.
        weight_decay: λ.
        decays: A function of the dotted name of a parameter and the parameter. It returns True if the
            parameter decays. By default the parameters with two or more axes do, as in GPT-3 and nanoGPT.

    Source: Loshchilov and Hutter 2019, algorithm 2.
    """

    def __init__(
        self,
        model: Any,
        *,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-9,
        weight_decay: float = 0.01,
        decays: Callable[[str, Parameter], bool] = is_matrix,
    ) -> None:
        super().__init__(model, betas=betas, eps=eps)
        self.weight_decay = weight_decay
        self.decaying = _ranges(model, decays)  # the parts of the buffer that decay

    def _update(self, part: slice, lr: float) -> None:
        """Let the parameters of a part of the buffer decay, then update the part."""
        for both in _overlaps(self.decaying, part):
            decay_weights(self.model.values[both], lr, self.weight_decay)
        super()._update(part, lr)


def _ranges(model: Any, decays: Callable[[str, Parameter], bool]) -> list[tuple[int, int]]:
    """Return the ranges (start, end) of the parameters that decay in the buffer of all parameters.

    Neighbouring parameters form one range.
    """
    ranges: list[tuple[int, int]] = []
    end = 0
    for name, parameter in model.named_parameters():
        start, end = end, end + parameter.value.size
        if not decays(name, parameter):
            continue
        if ranges and ranges[-1][1] == start:
            start, _ = ranges.pop()
        ranges.append((start, end))
    return ranges


def _overlaps(ranges: list[tuple[int, int]], part: slice) -> list[slice]:
    """Return the numbers of some ranges that lie in a part of the buffer, as slices that are not empty."""
    both = [slice(max(start, part.start), min(end, part.stop)) for start, end in ranges]
    return [each for each in both if each.start < each.stop]


def is_hidden(name: str, parameter: Parameter) -> bool:
    """Return True for the matrices inside layers, and False for embeddings, the output, gains and biases."""
    return len(parameter.shape) == 2 and not {"layer", "layers"}.isdisjoint(name.split("."))


class Muon(AdamW):
    """Muon for the matrices inside layers, and AdamW for all other parameters.

    m = μ m + (1 - μ) g,  value -= lr · .2 sqrt(max(I, O)) orthogonalize(μ m + (1 - μ) g)

    All singular values of an update are about equal, so a step moves the matrix as far in directions with
    small gradients as in those with large ones. The factor .2 sqrt(max(I, O)) gives the numbers of the update
    the root mean square of about .2 that Adam's updates have, so both groups have the same learning rate.

    Args:
        model: The model, whose parameters are moved into one buffer if they are not yet.
        betas: (β1, β2) of Adam.
        eps: The small number in the denominator of Adam.
        weight_decay: λ, the decay of all matrices and tables.
        momentum: μ.

    Raises:
        UserError: If no parameter of the model is a matrix inside a layer.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"; Liu et al. 2025,
        "Muon is scalable for LLM training", section 2.2 (the factor and the weight decay).
    """

    def __init__(
        self,
        model: Any,
        *,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-9,
        weight_decay: float = 0.01,
        momentum: float = 0.95,
    ) -> None:
        super().__init__(model, betas=betas, eps=eps, weight_decay=weight_decay)
        self.momentum = momentum
        self.adam_ranges = _ranges(model, lambda name, parameter: not is_hidden(name, parameter))
        self.matrices: list[tuple[slice, Parameter]] = []  # each with its part of the buffer
        end = 0
        for name, parameter in model.named_parameters():
            start, end = end, end + parameter.value.size
            if is_hidden(name, parameter):
                self.matrices.append((slice(start, end), parameter))
        if not self.matrices:
            raise UserError("Muon needs a model with matrices inside layers: train this one with Adam")

    def step(self, lr: float, over: Callable[[Callable[[slice], Any], int], Any] | None = None) -> None:
        """Update the parameters. The gradients are not modified.

        Args:
            lr: The learning rate.
            over: As for Adam.step. Each matrix is updated as a whole, by one thread.
        """
        super().step(lr, over)  # the decay, and Adam's updates
        if over is None:
            self._update_matrices(self.matrices, lr)
        else:
            over(lambda part: self._update_matrices(self.matrices[part], lr), len(self.matrices))

    def _update(self, part: slice, lr: float) -> None:
        """Let a part of the buffer decay, and make Adam's update of its parameters outside the matrices."""
        for both in _overlaps(self.decaying, part):
            decay_weights(self.model.values[both], lr, self.weight_decay)
        for both in _overlaps(self.adam_ranges, part):
            Adam._update(self, both, lr)

    def _update_matrices(self, matrices: list[tuple[slice, Parameter]], lr: float) -> None:
        """Update some of the matrices, of which several may lie side by side in one parameter."""
        for part, parameter in matrices:
            grad, m = self.model.grads[part], self.m[part]
            m += (1 - self.momentum) * (grad - m)
            ahead = (self.momentum * m + (1 - self.momentum) * grad).reshape(parameter.shape)  # (I, O)
            end = 0
            for width in parameter.widths or parameter.shape[1:]:
                start, end = end, end + width
                update = orthogonalize(ahead[:, start:end])  # (I, width)
                parameter.value[:, start:end] -= lr * 0.2 * math.sqrt(max(update.shape)) * update


Schedule = Callable[[int], float]  # the learning rate of a step, counted from 1


def warmup(d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> Schedule:
    """Return the paper's schedule: a linear increase, then a decrease as 1 / sqrt(s).

    lr = factor · d^-.5 · min(s^-.5, s · w^-1.5) at step s, with d = d_model and w = warmup_steps.

    Args:
        d_model: The width of the model.
        warmup_steps: The number of steps of the increase.
        factor: A number by which all learning rates are multiplied.

    Source: Vaswani et al. 2017, section 5.3.
    """
    require_count("warmup_steps", warmup_steps)
    return lambda step: factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def constant(lr: float) -> Schedule:
    """Return the schedule with the same learning rate at every step."""
    return lambda step: lr


def cosine(peak: float, total_steps: int, warmup_steps: int = 0, floor: float = 0.0) -> Schedule:
    """Return a schedule with a linear increase to the peak, then half a cosine down to the floor.

    Args:
        peak: The largest learning rate.
        total_steps: The number of steps of the run, at whose end the floor is reached.
        warmup_steps: The number of steps of the increase.
        floor: The learning rate at the end.

    Source: Loshchilov and Hutter 2017, equation 5.
    """
    require_count("total_steps", total_steps)

    def schedule(step: int) -> float:
        if step < warmup_steps:
            return peak * step / warmup_steps
        done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return floor + (peak - floor) * (1 + math.cos(math.pi * min(1.0, done))) / 2

    return schedule


def decayed(schedule: Schedule, total_steps: int, share: float) -> Schedule:
    """Return a schedule that follows another one and decays linearly to 0 in the last share of the steps.

    lr = schedule(f) · (n - s) / (n - f) for s > f, with n = total_steps and f = first_decay(n, share).

    Args:
        schedule: The schedule before the decay.
        total_steps: The number of steps of the run.
        share: The share of the steps in which the learning rate decays.

    Source: Zhai et al. 2022, "Scaling vision transformers", section 3.5 (the cool-down).
    """
    require_count("total_steps", total_steps)
    first = first_decay(total_steps, share)
    if first == total_steps:  # too small a share for one step
        return schedule

    def until_zero(step: int) -> float:
        if step <= first:
            return schedule(step)
        return schedule(max(1, first)) * max(0, total_steps - step) / (total_steps - first)

    return until_zero


def first_decay(total_steps: int, share: float) -> int:
    """Return the last step before a decay over this share of the steps."""
    return total_steps - round(share * total_steps)


def global_norm(grads: Array) -> float:
    """Return the Euclidean norm of the gradient of all parameters as one vector."""
    return math.sqrt(float(array_module(grads).vdot(grads, grads)))


def clip_global_norm(grads: Array, max_norm: float) -> float:
    """Scale the gradient in place so that its norm is at most max_norm, and return the norm before scaling.

    Source: Pascanu et al. 2013.
    """
    norm = global_norm(grads)
    if max_norm < norm < math.inf:  # the caller looks for NaN and infinity
        grads *= max_norm / norm
    return norm
