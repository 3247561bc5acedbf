"""Chapter 13: training."""

from typing import Any

import numpy as np

from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.nn import Linear
from npformer.training.optimizer import Adam, clip_global_norm, cosine, warmup


def _three_steps(own: Functions, rng: np.random.Generator) -> Any:
    model = Linear(4, 3, rng=rng, dtype=np.float64)
    adam = Adam(model, eps=1e-3)
    weight, result = model.weight.value, {}  # of the model's buffer of values, which Adam changes in place
    for step in range(3):
        grads = adam.model.grads
        grads[...] = rng.standard_normal(grads.shape)
        own.adam_step(adam, 0.03)
        for name, value in (("t", adam.t), ("m", adam.m), ("v", adam.v), ("values", model.values)):
            result[f"{name} after step {step + 1}"] = np.array(value)
    return result | {"the weight of the model after step 3": np.array(weight)}


def _rates(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    steps = (1, 2, 3, 4, 5, 6, 9, 16, 25, 36, 400)
    return {
        "the rates of warmup(64, 9)": np.array([own.warmup(64, 9)(s) for s in steps]),
        "the rates of warmup(64, 9, 2.0)": np.array([own.warmup(64, 9, 2.0)(s) for s in steps]),
    }


def _cosine_rates(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    schedule = own.cosine(0.3, 20, 5)
    return {
        "the rates of cosine(0.3, 20, 5)": np.array(
            [schedule(s) for s in (1, 2, 4, 5, 6, 10, 15, 19, 20, 30)]
        ),
        "the rates of cosine(0.7, 8)": np.array([own.cosine(0.7, 8)(s) for s in range(1, 9)]),
    }


def _clipped(own: Functions, rng: np.random.Generator) -> Any:
    result = {}
    for size, name in ((3.0, "large"), (0.01, "small")):
        grads = size * rng.standard_normal(7)
        result[f"the norm of a {name} gradient"] = own.clip_global_norm(grads, 1.5)
        result[f"a {name} gradient, clipped to 1.5"] = grads
    return result


def adam_step(adam: Any, lr: float) -> None:
    """Do what Adam.step does, with adam_update written out: the solution."""
    beta1, beta2 = adam.betas
    g = adam.model.grads
    adam.t += 1
    adam.m += (1 - beta1) * (g - adam.m)
    adam.v += (1 - beta2) * (g * g - adam.v)
    m_hat = adam.m / (1 - beta1**adam.t)
    v_hat = adam.v / (1 - beta2**adam.t)
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)


TRAINING = exercises(
    r'''
=== 13 adam-step: one step of Adam
import numpy as np


def adam_step(adam, lr):
    """Make one step of Adam.

        t = t + 1
        m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g²
        value = value - lr · (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    m, v and t are 0 before the first step. The divisions by 1 - b1^t and 1 - b2^t correct for this.
    adam  .betas (b1, b2); .eps; .t, the number of steps that were made before; .m and .v (P,);
          .model.values and .model.grads (P,), the parameters and their gradients g
    Changes adam.t, adam.m, adam.v and adam.model.values in place (values -= ...). Returns nothing.
    """
    beta1, beta2 = adam.betas
    g = adam.model.grads
    # solution
    adam.t += 1
    adam.m[...] = beta1 * adam.m + (1 - beta1) * g
    adam.v[...] = beta2 * adam.v + (1 - beta2) * g * g
    m_hat = adam.m / (1 - beta1**adam.t)
    v_hat = adam.v / (1 - beta2**adam.t)
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)
--- First update adam.t, adam.m and adam.v, in this order. Then update the values.
--- m_hat = m / (1 - beta1**t), and v_hat = v / (1 - beta2**t).
--- adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps).

=== 13 warmup: the paper's learning rate schedule

def warmup(d_model, warmup_steps=4000, factor=1.0):
    """Return the schedule lr = factor · d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5).

    Returns a function that takes the number of the step, counted from 1, and returns the learning rate.
    """
    # solution
    def schedule(step):
        decrease = step**-0.5
        increase = step * warmup_steps**-1.5
        return factor * d_model**-0.5 * min(decrease, increase)
    return schedule
--- The result is a function. Define it inside warmup with def schedule(step), or use a lambda.
--- To test your function: at step = warmup_steps both arguments of min are equal, and the learning rate has
    its maximum.
--- return lambda step: factor * d_model**-0.5 * min(...).

=== 13 cosine-schedule: a schedule that decreases like a cosine
import math


def cosine(peak, total_steps, warmup_steps=0):
    """Return a schedule that increases linearly and then decreases like half a period of a cosine.

    Before warmup_steps, the learning rate is peak · step / warmup_steps. At warmup_steps it is peak. Then it
    decreases to 0 at total_steps, and it stays 0 afterwards.
    Returns a function that takes the number of the step, counted from 1, and returns the learning rate.
    """
    # solution
    def schedule(step):
        if step < warmup_steps:
            return peak * step / warmup_steps
        done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))
        return peak * (1 + math.cos(math.pi * done)) / 2
    return schedule
--- There are two cases: step < warmup_steps, and step >= warmup_steps.
--- In the second case, done = (step - warmup_steps) / (total_steps - warmup_steps) increases from 0 to 1.
--- Then the learning rate is peak · (1 + cos(pi · done)) / 2. Limit done to at most 1.

=== 13 clip-gradient: gradient clipping by the norm
import math


def clip_global_norm(grads, max_norm):
    """Scale the gradient in place so that its Euclidean norm is at most max_norm.

    grads  (P,), the gradient of all parameters as one vector
    Returns the norm before scaling, a number.
    """
    # solution
    norm = math.sqrt((grads**2).sum())
    if norm > max_norm:
        grads *= max_norm / norm
    return norm
--- The Euclidean norm of a vector is the root of the sum of its squares.
--- Change the gradient only if its norm is larger than max_norm. Multiply all entries by the same number, so
    that the direction stays the same.
--- grads *= max_norm / norm.
''',
    {
        "adam-step": Task(adam_step, Values("", _three_steps, numbers=((0.03, "lr"),))),
        "warmup": Task(
            warmup,
            Values("", _rates, numbers=((64, "d_model"), (9, "warmup_steps")), hidden=hidden_inputs.rates),
        ),
        "cosine-schedule": Task(
            cosine, Values("", _cosine_rates, numbers=((0.3, "peak"),), hidden=hidden_inputs.cosine_rates)
        ),
        "clip-gradient": Task(
            clip_global_norm, Values("", _clipped, numbers=((1.5, "max_norm"),)), writes=True
        ),
    },
)
