"""Bugs around the backward passes: gradient buffers, Adam, clipping, schedules."""

from planted_bugs.bug import Bug

_MODULE = "nn/module.py"
_VIEW = "self._grad = self.buffer.grads[self._part].reshape(self.value.shape)"
_TWIN = "replica._view(replica.parameters(), self.values)"

MODULE = (
    Bug("zero_grad: does nothing", "= for +=", _MODULE, "self._allocated_grad()[...] = 0", "pass"),
    Bug(
        "zero_grad: leaves out the first",
        "dropped branch",
        _MODULE,
        "for parameter in self.parameters():\n            parameter.zero_grad()",
        "for parameter in self.parameters()[1:]:\n            parameter.zero_grad()",
    ),
    Bug(
        "accumulate: overwrites what a user wrote",
        "= for +=",
        _MODULE,
        "self._is_zero = False  # the caller",
        "pass  # the caller",
    ),
    Bug(
        "accumulate: a second product overwrites the first",
        "= for +=",
        _MODULE,
        "            grad[at] += gradient\n        self._is_zero = False",
        "            grad[at] += gradient",
    ),
    Bug(
        "named_parameters: a tied parameter twice",
        "lost tie",
        _MODULE,
        "id(item) not in seen:",
        "name not in seen:",
    ),
    Bug("flatten: gradients outside their buffer", "lost tie", _MODULE, _VIEW, _VIEW + ".copy()"),
    Bug(
        "replicate: gradients shared",
        "lost tie",
        _MODULE,
        _TWIN,
        "replica._view(replica.parameters(), self.values, self.grads)",
    ),
    Bug(
        "replicate: values copied",
        "lost tie",
        _MODULE,
        _TWIN,
        "replica._view(replica.parameters(), self.values.copy())",
    ),
    Bug(
        "replicate: starts from the gradients so far",
        "wrong term",
        _MODULE,
        _TWIN,
        "replica._view(replica.parameters(), self.values, self.grads.copy())",
    ),
)

_OPTIM = "training/optimizer.py"
_ADAM = "functional/adam.py"
_M = "m += (1 - beta1) * (grads - m)"
_V = "v += (1 - beta2) * (grads * grads - v)"
_UPDATE = "values -= lr * m_hat / (xp.sqrt(v_hat) + eps)"

ADAM = (
    Bug("Adam: sign", "sign", _ADAM, _UPDATE, "values += lr * m_hat / (xp.sqrt(v_hat) + eps)"),
    Bug(
        "Adam: eps inside the root",
        "wrong term",
        _ADAM,
        _UPDATE,
        "values -= lr * m_hat / xp.sqrt(v_hat + eps)",
    ),
    Bug(
        "Adam: eps left out",
        "dropped branch",
        _ADAM,
        _UPDATE,
        "values -= lr * m_hat / xp.sqrt(v_hat)",
    ),
    Bug(
        "Adam: root left out",
        "missing scale",
        _ADAM,
        _UPDATE,
        "values -= lr * m_hat / (v_hat + eps)",
    ),
    Bug(
        "Adam: mean not corrected",
        "missing scale",
        _ADAM,
        "m_hat = m / (1 - beta1**t)",
        "m_hat = m",
    ),
    Bug(
        "Adam: squares not corrected",
        "missing scale",
        _ADAM,
        "v_hat = v / (1 - beta2**t)",
        "v_hat = v",
    ),
    Bug("Adam: t counted twice", "wrong term", _OPTIM, "self.t += 1", "self.t += 2"),
    Bug("Adam: t stays 1", "= for +=", _OPTIM, "self.t += 1", "self.t = 1"),
    Bug("Adam: betas swapped", "swapped", _ADAM, "beta1, beta2 = betas", "beta2, beta1 = betas"),
    Bug("Adam: mean overwritten", "= for +=", _ADAM, _M, "m = (1 - beta1) * (grads - m)"),
    Bug("Adam: mean does not decay", "dropped branch", _ADAM, _M, "m += (1 - beta1) * grads"),
    Bug("Adam: squares do not decay", "dropped branch", _ADAM, _V, "v += (1 - beta2) * (grads * grads)"),
    Bug("Adam: gradient not squared", "missing scale", _ADAM, _V, "v += (1 - beta2) * (abs(grads) - v)"),
)

_DECAY = "values *= 1 - lr * weight_decay"

ADAMW = (
    Bug("AdamW: weights grow", "sign", _ADAM, _DECAY, "values *= 1 + lr * weight_decay"),
    Bug("AdamW: learning rate left out", "missing scale", _ADAM, _DECAY, "values *= 1 - weight_decay"),
    Bug("AdamW: decay of a copy", "lost tie", _ADAM, _DECAY, "values = values * (1 - lr * weight_decay)"),
    Bug("AdamW: gains and biases decay too", "wrong mask", _OPTIM, "len(parameter.shape) > 1", "True"),
    Bug(
        "AdamW: each worker decays the whole ranges",
        "wrong mask",
        _OPTIM,
        "slice(max(start, part.start), min(end, part.stop))",
        "slice(start, end)",
    ),
    Bug(
        "AdamW: ranges of neighbours lost",
        "dropped branch",
        _OPTIM,
        "start, _ = ranges.pop()",
        "ranges.pop()",
    ),
)

_CONSISTENCY = "training/consistency.py"

CONSISTENCY = (
    Bug("R-Drop: sign", "sign", _CONSISTENCY, "difference = d1 - d2", "difference = d2 - d1"),
    Bug("R-Drop: weight left out", "missing scale", _CONSISTENCY, "difference *= alpha", "pass"),
    Bug("R-Drop: second pass left out", "dropped branch", _CONSISTENCY, "d2 -= difference", "pass"),
    Bug("R-Drop: second pass moves away", "sign", _CONSISTENCY, "d2 -= difference", "d2 += difference"),
    Bug(
        "R-Drop: the gradient of the sum of both passes",
        "missing scale",
        "training/step.py",
        "batch, tokens = twice(batch), 2 * tokens",
        "batch = twice(batch)",
    ),
)

_CLIP = "grads *= max_norm / norm"

CLIPPING_AND_SCHEDULES = (
    Bug("clip: inverted ratio", "swapped", _OPTIM, _CLIP, "grads *= norm / max_norm"),
    Bug("clip: scales a copy", "lost tie", _OPTIM, _CLIP, "grads = grads * (max_norm / norm)"),
    Bug("clip: not to max_norm", "missing scale", _OPTIM, _CLIP, "grads /= norm"),
    Bug("clip: small gradients too", "wrong mask", _OPTIM, "if norm > max_norm:", "if norm > 0:"),
    Bug(
        "global_norm: no root",
        "missing scale",
        _OPTIM,
        "return math.sqrt(float(array_module(grads).vdot(grads, grads)))",
        "return float(array_module(grads).vdot(grads, grads))",
    ),
    Bug("warmup: d^.5", "sign", _OPTIM, "factor * d_model**-0.5", "factor * d_model**0.5"),
    Bug("warmup: w^-.5", "wrong term", _OPTIM, "step * warmup_steps**-1.5", "step * warmup_steps**-0.5"),
    Bug("warmup: the larger of the two", "swapped", _OPTIM, "min(step**-0.5,", "max(step**-0.5,"),
    Bug("warmup: factor left out", "missing scale", _OPTIM, "factor * d_model", "d_model"),
    Bug(
        "cosine: not halved",
        "missing scale",
        _OPTIM,
        "(1 + math.cos(math.pi * min(1.0, done))) / 2",
        "(1 + math.cos(math.pi * min(1.0, done)))",
    ),
    Bug(
        "cosine: rises again",
        "dropped branch",
        _OPTIM,
        "math.cos(math.pi * min(1.0, done))",
        "math.cos(math.pi * done)",
    ),
    Bug("cosine: floor added to the peak", "wrong term", _OPTIM, "floor + (peak - floor)", "floor + peak"),
    Bug("cosine: floor left out", "dropped branch", _OPTIM, "floor + (peak - floor)", "peak"),
    Bug("cosine: warmup left out", "dropped branch", _OPTIM, "if step < warmup_steps:", "if False:"),
)

TRAINING = (*MODULE, *ADAM, *ADAMW, *CONSISTENCY, *CLIPPING_AND_SCHEDULES)
