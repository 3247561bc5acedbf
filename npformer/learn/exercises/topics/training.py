"""Lesson 13: training."""

from typing import Any

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Functions, Values
from npformer.nn import Linear
from npformer.training.optimizer import Adam, clip_global_norm, cosine, warmup


def _three_steps(own: Functions, rng: np.random.Generator) -> Any:
    model = Linear(4, 3, rng=rng, dtype=np.float64)
    adam = Adam(model, eps=1e-3)
    result = {}
    for step in range(3):
        grads = adam.model.grads
        grads[...] = rng.standard_normal(grads.shape)
        own.adam_step(adam, 0.1)
        for name, value in (("t", adam.t), ("m", adam.m), ("v", adam.v), ("values", model.values)):
            result[f"{name} after step {step + 1}"] = np.array(value)
    return result


def _rates(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    steps = (1, 2, 3, 4, 5, 6, 9, 16, 25, 36, 400)
    return {
        "the rates of warmup(64, 9)": np.array([own.warmup(64, 9)(s) for s in steps]),
        "the rates of warmup(64, 9, 2.0)": np.array([own.warmup(64, 9, 2.0)(s) for s in steps]),
    }


def _cosine_rates(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    schedule = own.cosine(0.5, 20, 5)
    return {
        "the rates of cosine(0.5, 20, 5)": np.array(
            [schedule(s) for s in (1, 2, 4, 5, 6, 10, 15, 19, 20, 30)]
        ),
        "the rates of cosine(0.5, 8)": np.array([own.cosine(0.5, 8)(s) for s in range(1, 9)]),
    }


def _clipped(own: Functions, rng: np.random.Generator) -> Any:
    result = {}
    for size, name in ((3.0, "long"), (0.01, "short")):
        grads = size * rng.standard_normal(7)
        result[f"the length of a {name} gradient"] = own.clip_global_norm(grads, 1.5)
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


TRAINING = (
    Exercise(
        "adam-step",
        13,
        "one step of Adam",
        '''
import numpy as np


def adam_step(adam, lr):
    """m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g²;  both start at 0 and are too small at first, so
    value -= lr · (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), with t = 1 at the first step.

    adam  .betas (b1, b2), .eps, .m and .v (P,), .t (how many steps were made: count it up first),
          .model.values and .model.grads (P,)
    Changes adam.m, adam.v, adam.t and adam.model.values, in place (values -= ...); returns nothing.
    """
    beta1, beta2 = adam.betas
    g = adam.model.grads
''',
        (Values("", _three_steps, numbers=((0.1, "lr"),)),),
        (
            "Four lines of state (t, m, v), then one that moves the values.",
            "m_hat = m / (1 - beta1**t), v_hat the same with beta2.",
            "adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps).",
        ),
        {"adam_step": adam_step},
    ),
    Exercise(
        "warmup",
        13,
        "the paper's learning rate: up, then down",
        '''

def warmup(d_model, warmup_steps=4000, factor=1.0):
    """lr = factor · d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5).

    Returns a function from the step, counted from 1, to the learning rate.
    """
''',
        (Values("", _rates, numbers=((64, "d_model"), (9, "warmup_steps"))),),
        (
            "A function that returns a function: def schedule(step) inside, or a lambda.",
            "At step = warmup_steps both arguments of min are equal: that is the peak.",
            "lambda step: factor * d_model**-0.5 * min(...).",
        ),
        {"warmup": warmup},
    ),
    Exercise(
        "cosine-schedule",
        13,
        "up in a line, then down along half a cosine",
        '''
import math


def cosine(peak, total_steps, warmup_steps=0):
    """Up to the peak in a line, then down to 0 at total_steps along half a cosine, and 0 after that.

    Returns a function from the step, counted from 1, to the learning rate. Before warmup_steps it is
    peak · step / warmup_steps.
    """
''',
        (Values("", _cosine_rates, numbers=((0.5, "peak"),)),),
        (
            "Two cases: before warmup_steps, and from there on.",
            "done = (step - warmup_steps) / (total_steps - warmup_steps) runs from 0 to 1.",
            "peak · (1 + cos(pi · done)) / 2, with done never above 1.",
        ),
        {"cosine": cosine},
    ),
    Exercise(
        "clip-gradient",
        13,
        "a gradient that is too long, shortened",
        '''
import math


def clip_global_norm(grads, max_norm):
    """Shorten the gradient, in place, to max_norm where it is longer.

    grads  (P,), the gradient of all parameters as one vector; changed in place
    Returns the length that it had, a number.
    """
''',
        (Values("", _clipped, numbers=((1.5, "max_norm"),)),),
        (
            "The length of a vector: the root of the sum of its squares.",
            "Only a longer one is changed, and keeps its direction: times one number.",
            "grads *= max_norm / length.",
        ),
        {"clip_global_norm": clip_global_norm},
        writes=True,
    ),
)
