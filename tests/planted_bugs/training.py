"""Bugs in what lies round the backward passes: gradient buffers, Adam, clipping, schedules."""

from planted_bugs.bug import Bug

_MODULE = "module.py"
_VIEW = "parameter.grad = grads[start:end].reshape(shape)"
_TWIN = "twin._view(twin.parameters(), self.values, array_module(self.grads).zeros_like(self.grads))"

MODULE = (
    Bug("zero_grad: forgets", "= for +=", _MODULE, "parameter.grad[...] = 0", "parameter.grad[...] += 0"),
    Bug(
        "zero_grad: forgets the first",
        "dropped branch",
        _MODULE,
        "for parameter in self.parameters():\n            parameter.grad[...] = 0",
        "for parameter in self.parameters()[1:]:\n            parameter.grad[...] = 0",
    ),
    Bug(
        "named_parameters: a tied parameter twice",
        "lost tie",
        _MODULE,
        "if id(parameter) not in seen:",
        "if name not in seen:",
    ),
    Bug("flatten: gradients beside their buffer", "lost tie", _MODULE, _VIEW, _VIEW + ".copy()"),
    Bug(
        "replicate: gradients shared",
        "lost tie",
        _MODULE,
        _TWIN,
        "twin._view(twin.parameters(), self.values, self.grads)",
    ),
    Bug(
        "replicate: values copied",
        "lost tie",
        _MODULE,
        _TWIN,
        "twin._view(twin.parameters(), self.values.copy(), array_module(self.grads).zeros_like(self.grads))",
    ),
    Bug(
        "replicate: starts from the gradients so far",
        "wrong term",
        _MODULE,
        _TWIN,
        "twin._view(twin.parameters(), self.values, self.grads.copy())",
    ),
)

_OPTIM = "optim.py"
_M = "self.m += (1 - beta1) * (g - self.m)"
_V = "self.v += (1 - beta2) * (g * g - self.v)"
_UPDATE = "self.model.values -= lr * m_hat / (xp.sqrt(v_hat) + self.eps)"

ADAM = (
    Bug(
        "Adam: sign", "sign", _OPTIM, _UPDATE, "self.model.values += lr * m_hat / (xp.sqrt(v_hat) + self.eps)"
    ),
    Bug(
        "Adam: eps inside the root",
        "wrong term",
        _OPTIM,
        _UPDATE,
        "self.model.values -= lr * m_hat / xp.sqrt(v_hat + self.eps)",
    ),
    Bug(
        "Adam: eps left out",
        "dropped branch",
        _OPTIM,
        _UPDATE,
        "self.model.values -= lr * m_hat / xp.sqrt(v_hat)",
    ),
    Bug(
        "Adam: root left out",
        "missing scale",
        _OPTIM,
        _UPDATE,
        "self.model.values -= lr * m_hat / (v_hat + self.eps)",
    ),
    Bug(
        "Adam: mean not corrected",
        "missing scale",
        _OPTIM,
        "m_hat = self.m / (1 - beta1**self.t)",
        "m_hat = self.m",
    ),
    Bug(
        "Adam: squares not corrected",
        "missing scale",
        _OPTIM,
        "v_hat = self.v / (1 - beta2**self.t)",
        "v_hat = self.v",
    ),
    Bug("Adam: t counted twice", "wrong term", _OPTIM, "self.t += 1", "self.t += 2"),
    Bug("Adam: t stays 1", "= for +=", _OPTIM, "self.t += 1", "self.t = 1"),
    Bug("Adam: betas swapped", "swapped", _OPTIM, "beta1, beta2 = self.betas", "beta2, beta1 = self.betas"),
    Bug("Adam: mean forgets", "= for +=", _OPTIM, _M, "self.m = (1 - beta1) * (g - self.m)"),
    Bug("Adam: mean does not decay", "dropped branch", _OPTIM, _M, "self.m += (1 - beta1) * g"),
    Bug("Adam: squares do not decay", "dropped branch", _OPTIM, _V, "self.v += (1 - beta2) * (g * g)"),
    Bug(
        "Adam: gradient not squared", "missing scale", _OPTIM, _V, "self.v += (1 - beta2) * (abs(g) - self.v)"
    ),
)

_CLIP = "grads *= max_norm / norm"

CLIPPING_AND_SCHEDULES = (
    Bug("clip: upside down", "swapped", _OPTIM, _CLIP, "grads *= norm / max_norm"),
    Bug("clip: a copy", "lost tie", _OPTIM, _CLIP, "grads = grads * (max_norm / norm)"),
    Bug("clip: not to max_norm", "missing scale", _OPTIM, _CLIP, "grads /= norm"),
    Bug("clip: short gradients too", "wrong mask", _OPTIM, "if norm > max_norm:", "if norm > 0:"),
    Bug(
        "global_norm: no root",
        "missing scale",
        _OPTIM,
        "return math.sqrt(float((grads * grads).sum()))",
        "return float((grads * grads).sum())",
    ),
    Bug("warmup: d^.5", "sign", _OPTIM, "factor * d_model**-0.5", "factor * d_model**0.5"),
    Bug("warmup: w^-.5", "wrong term", _OPTIM, "step * warmup_steps**-1.5", "step * warmup_steps**-0.5"),
    Bug("warmup: the larger of the two", "swapped", _OPTIM, "min(step**-0.5,", "max(step**-0.5,"),
    Bug("warmup: factor left out", "missing scale", _OPTIM, "factor * d_model", "d_model"),
    Bug(
        "cosine: not halved",
        "missing scale",
        _OPTIM,
        "return peak * (1 + math.cos(math.pi * min(1.0, done))) / 2",
        "return peak * (1 + math.cos(math.pi * min(1.0, done)))",
    ),
    Bug(
        "cosine: rises again",
        "dropped branch",
        _OPTIM,
        "math.cos(math.pi * min(1.0, done))",
        "math.cos(math.pi * done)",
    ),
    Bug("cosine: warmup left out", "dropped branch", _OPTIM, "if step < warmup_steps:", "if False:"),
)

TRAINING = (*MODULE, *ADAM, *CLIPPING_AND_SCHEDULES)
