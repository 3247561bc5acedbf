"""Chapter 13: plain solutions and mistakes."""

import math
from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain

M_HAT, V_HAT = "adam.m / (1 - beta1**adam.t)", "adam.v / (1 - beta2**adam.t)"
UPDATE = "adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)"
PART = "(step - warmup_steps) / (total_steps - warmup_steps)"
NORM = "math.sqrt((grads**2).sum())"


MOMENTS = (  # mistakes in the moments and in the step of Adam, which AdamW makes too
    mistake(
        "the bias correction is left out: m and v are used without the divisions by 1 - b1^t and 1 - b2^t",
        M_HAT,
        "adam.m",
        V_HAT,
        "adam.v",
    ),
    mistake("the bias correction of m, the division by 1 - b1^t, is left out", M_HAT, "adam.m"),
    mistake("the bias correction of v, the division by 1 - b2^t, is left out", V_HAT, "adam.v"),
    mistake(
        "t is advanced too late: it is still 0 in the first step, after which it must be 1",
        "    adam.t += 1\n",
        "",
        UPDATE,
        UPDATE + "\n    adam.t += 1",
    ),
    mistake(
        "t is advanced too late: the division by 1 - b^t uses the number of the step before",
        "    adam.t += 1\n",
        "",
        "**adam.t",
        "**max(adam.t, 1)",
        UPDATE,
        UPDATE + "\n    adam.t += 1",
    ),
    mistake(
        "the corrected m_hat is stored in adam.m, and the corrected v_hat in adam.v: the next step needs "
        "m and v without the correction",
        M_HAT,
        "adam.m[...] = " + M_HAT,
        V_HAT,
        "adam.v[...] = " + V_HAT,
    ),
    mistake(
        "the corrected m_hat is stored in adam.m: the next step needs m without the correction",
        M_HAT,
        "adam.m[...] = " + M_HAT,
    ),
    mistake(
        "the corrected v_hat is stored in adam.v: the next step needs v without the correction",
        V_HAT,
        "adam.v[...] = " + V_HAT,
    ),
    mistake(
        "(1 - b)^t is used instead of 1 - b^t",
        "1 - beta1**adam.t",
        "(1 - beta1)**adam.t",
        "1 - beta2**adam.t",
        "(1 - beta2)**adam.t",
    ),
    mistake("adam.t is not advanced: the step is left out", "adam.t += 1", "pass"),
    mistake("adam.t counts two steps for one", "adam.t += 1", "adam.t += 2"),
    mistake(
        "eps is added to v under the square root, and must be added to the root",
        "np.sqrt(v_hat) + adam.eps",
        "np.sqrt(v_hat + adam.eps)",
    ),
    mistake("the square root of v is left out", "np.sqrt(v_hat)", "v_hat"),
    mistake("the gradient is not squared in v: the second factor g is left out", "g * g", "g"),
    mistake("the absolute value of the gradient stands in v instead of its square", "g * g", "np.abs(g)"),
    mistake("the factor 1 - b1 of the gradient is left out in m", "(1 - beta1) * g", "g"),
    mistake("the factor 1 - b2 of the squared gradient is left out in v", "(1 - beta2) * g * g", "g * g"),
    mistake(
        "b1 and 1 - b1 are exchanged in m",
        "beta1 * adam.m + (1 - beta1) * g",
        "(1 - beta1) * adam.m + beta1 * g",
    ),
    mistake(
        "b2 and 1 - b2 are exchanged in v",
        "beta2 * adam.v + (1 - beta2) * g",
        "(1 - beta2) * adam.v + beta2 * g",
    ),
    mistake("b1 and b2 are exchanged", "beta1, beta2 = adam", "beta2, beta1 = adam"),
    mistake("eps is left out", " + adam.eps", ""),
    mistake("the power b1^t is a product b1 · t, and so is b2^t", "**adam.t", "*adam.t"),
    mistake("the exponent t of the bias correction is left out", "**adam.t", ""),
    mistake("t is one too large in the bias correction", "**adam.t", "**(adam.t + 1)"),
    mistake(
        "adam.t is not advanced: t + 1 is used in the bias correction only, so the next step finds the old t",
        "    adam.t += 1\n",
        "",
        "**adam.t",
        "**(adam.t + 1)",
    ),
    mistake("the learning rate lr is left out", "lr * m_hat", "m_hat"),
    mistake("the gradient g is used instead of m_hat, so there is no momentum", "lr * m_hat", "lr * g"),
    mistake("it is multiplied by the root of v instead of divided", "m_hat / (", "m_hat * ("),
    mistake(
        "the bias correction is left out, and eps is added under the square root",
        M_HAT,
        "adam.m",
        V_HAT,
        "adam.v",
        "np.sqrt(v_hat) + adam.eps",
        "np.sqrt(v_hat + adam.eps)",
    ),
    mistake(
        "v is computed from the corrected m_hat² instead of g²: it is the mean of the squared gradients",
        "(1 - beta2) * g * g",
        "(1 - beta2) * (adam.m / (1 - beta1**adam.t)) ** 2",
    ),
    mistake(
        "v is computed from m² instead of g²: it is the mean of the squared gradients",
        "(1 - beta2) * g * g",
        "(1 - beta2) * adam.m**2",
    ),
    mistake(
        "v is computed from (g - m)², as in AdaBelief: it is the mean of g²",
        "(1 - beta2) * g * g",
        "(1 - beta2) * (g - adam.m) ** 2",
    ),
    mistake(
        "v is the sum of all squared gradients, as in AdaGrad: it is a moving mean",
        "beta2 * adam.v + (1 - beta2) * g * g",
        "adam.v + g * g",
    ),
    mistake(
        "all parameters share one v: each parameter has its own",
        "(1 - beta2) * g * g",
        "(1 - beta2) * (g * g).mean()",
    ),
    mistake(
        "all parameters share one v, the sum of the squares of all gradients: each parameter has its own",
        "(1 - beta2) * g * g",
        "(1 - beta2) * (g * g).sum()",
    ),
    mistake(
        "the moments of the step before are used: m and v must be updated first",
        "    adam.t += 1",
        "    m, v = adam.m.copy(), adam.v.copy()\n    adam.t += 1",
        M_HAT,
        "m / (1 - beta1**adam.t)",
        V_HAT,
        "v / (1 - beta2**adam.t)",
    ),
    mistake(
        "the v of the step before is used: it must be updated first",
        "    adam.t += 1",
        "    v = adam.v.copy()\n    adam.t += 1",
        V_HAT,
        "v / (1 - beta2**adam.t)",
    ),
    mistake(
        "the m of the step before is used: it must be updated first",
        "    adam.t += 1",
        "    m = adam.m.copy()\n    adam.t += 1",
        M_HAT,
        "m / (1 - beta1**adam.t)",
    ),
    mistake(
        "the next gradient is anticipated in m_hat, as in Nesterov's momentum (NAdam)",
        M_HAT,
        "(beta1 * adam.m + (1 - beta1) * g) / (1 - beta1**adam.t)",
    ),
    mistake(
        "b1 and b2 are exchanged in the bias corrections",
        "1 - beta1**adam.t",
        "1 - beta_2**adam.t",
        "1 - beta2**adam.t",
        "1 - beta1**adam.t",
        "beta_2",
        "beta2",
    ),
    mistake("the bias correction of v uses b1: it must use b2", "1 - beta2**adam.t", "1 - beta1**adam.t"),
    mistake("the bias correction of m uses b2: it must use b1", "1 - beta1**adam.t", "1 - beta2**adam.t"),
    mistake(
        "the gradient is divided by its norm first: Adam uses it as it is",
        "    adam.t += 1",
        "    g = g / np.linalg.norm(g)\n    adam.t += 1",
    ),
    mistake(
        "the parentheses are wrong: eps is added to the quotient, and must be added to the root of v",
        "lr * m_hat / (np.sqrt(v_hat) + adam.eps)",
        "lr * m_hat / np.sqrt(v_hat) + adam.eps",
    ),
    mistake("the learning rate is divided by the root of t", "lr * m_hat", "lr / np.sqrt(adam.t) * m_hat"),
    mistake(
        "the sign of the gradient is used instead of m_hat over the root of v",
        "m_hat / (np.sqrt(v_hat) + adam.eps)",
        "np.sign(g)",
    ),
    mistake(
        "the step is not divided by the root of v: this is momentum",
        "m_hat / (np.sqrt(v_hat) + adam.eps)",
        "m_hat",
    ),
    mistake(
        "1 - b1 is the factor of m too: the factor of the old m is b1",
        "beta1 * adam.m + (1 - beta1) * g",
        "(1 - beta1) * (adam.m + g)",
    ),
    mistake(
        "the old m is left out: m is a moving mean", "beta1 * adam.m + (1 - beta1) * g", "(1 - beta1) * g"
    ),
    mistake(
        "the old v is left out: v is a moving mean",
        "beta2 * adam.v + (1 - beta2) * g * g",
        "(1 - beta2) * g * g",
    ),
    mistake(
        "the factors 1 - b1 and 1 - b2 are left out in m and v",
        "(1 - beta1) * g",
        "g",
        "(1 - beta2) * g * g",
        "g * g",
    ),
)


@plain(
    "adam-step",
    mistake(
        "the values move in the direction of the gradient: the sign of the update is wrong",
        "values -=",
        "values +=",
    ),
    mistake(
        "adam.model.values becomes a new array: change it in place, because the weights are parts of it",
        "values -= ",
        "values = adam.model.values - ",
    ),
    *MOMENTS,
)
def adam_step(adam: Any, lr: Any) -> None:
    """Change a parameter and its moments by one step of Adam."""
    beta1, beta2 = adam.betas
    g = adam.model.grads
    adam.t += 1
    adam.m[...] = beta1 * adam.m + (1 - beta1) * g
    adam.v[...] = beta2 * adam.v + (1 - beta2) * g * g
    m_hat = adam.m / (1 - beta1**adam.t)
    v_hat = adam.v / (1 - beta2**adam.t)
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)


@plain(
    "warmup",
    mistake("the factor d_model^-0.5 is left out", "d_model**-0.5 * ", ""),
    mistake("max is used instead of min", "min(", "max("),
    mistake("the power of warmup_steps is -0.5 instead of -1.5", "warmup_steps**-1.5", "warmup_steps**-0.5"),
    mistake("the power of warmup_steps is -1 instead of -1.5", "warmup_steps**-1.5", "warmup_steps**-1.0"),
    mistake(
        "the power of d_model is 0.5 instead of -0.5: its sign is wrong", "d_model**-0.5", "d_model**0.5"
    ),
    mistake("the power of d_model is -1 instead of -0.5", "d_model**-0.5", "d_model**-1.0"),
    mistake("the argument factor is left out", "factor * ", ""),
    mistake(
        "the steps are counted from 0: the learning rate is that of the step after", "= step", "= (step + 1)"
    ),
    mistake(
        "the learning rate is that of the step before: it comes one step too late",
        "= step ",
        "= (step - 1) ",
        "= step**",
        "= max(step - 1, 1e-9)**",
    ),
    mistake(
        "after the warmup the learning rate stays constant: step^-0.5 is replaced by warmup_steps^-0.5",
        "step**-0.5",
        "warmup_steps**-0.5",
    ),
    mistake(
        "the decrease counts the steps from the end of the warmup: step^-0.5 must count all steps",
        "step**-0.5",
        "((step - warmup_steps + 1)**-0.5 if step >= warmup_steps else 1e9)",
    ),
    mistake("step^-0.5 is 1/step: the square root is left out", "step**-0.5", "step**-1.0"),
    mistake(
        "the learning rate decreases from the first step: the warmup is left out, or the power of "
        "warmup_steps has the wrong sign",
        "min(decrease, increase)",
        "decrease",
    ),
    mistake(
        "the decrease after the warmup is left out: the learning rate rises for ever",
        "min(decrease, increase)",
        "increase",
    ),
    mistake(
        "factor and d_model^-0.5 multiply only the first argument of min: they must multiply the min",
        "factor * d_model**-0.5 * min(decrease, increase)",
        "min(factor * d_model**-0.5 * decrease, increase)",
    ),
    mistake(
        "d_model^-0.5 multiplies only the first argument of min: it must multiply the min",
        "d_model**-0.5 * min(decrease, increase)",
        "min(d_model**-0.5 * decrease, increase)",
    ),
    mistake(
        "factor and d_model^-0.5 multiply only the second argument of min: they must multiply the min",
        "factor * d_model**-0.5 * min(decrease, increase)",
        "min(decrease, factor * d_model**-0.5 * increase)",
    ),
    mistake(
        "d_model^-0.5 multiplies only the second argument of min: it must multiply the min",
        "d_model**-0.5 * min(decrease, increase)",
        "min(decrease, d_model**-0.5 * increase)",
    ),
    mistake(
        "factor multiplies only the first argument of min: it must multiply the min",
        "factor * d_model**-0.5 * min(decrease, increase)",
        "d_model**-0.5 * min(factor * decrease, increase)",
    ),
    mistake(
        "factor multiplies only the second argument of min: it must multiply the min",
        "factor * d_model**-0.5 * min(decrease, increase)",
        "d_model**-0.5 * min(decrease, factor * increase)",
    ),
    mistake(
        "warmup_steps^-1.5 multiplies the min: it belongs to its second argument",
        "min(decrease, increase)",
        "min(decrease, step) * warmup_steps**-1.5",
    ),
    mistake(
        "step is in the power too: only warmup_steps has the power -1.5",
        "step * warmup_steps**-1.5",
        "(step * warmup_steps) ** -1.5",
    ),
    mistake("the two arguments of min are multiplied", "min(decrease, increase)", "decrease * increase"),
    mistake("the two arguments of min are added", "min(decrease, increase)", "(decrease + increase)"),
    mistake("the two arguments of min are averaged", "min(decrease, increase)", "(decrease + increase) / 2"),
    mistake(
        "the learning rate is constant in the warmup, as max(step, warmup_steps)^-0.5: it must rise there",
        "min(decrease, increase)",
        "max(step, warmup_steps) ** -0.5",
    ),
    mistake(
        "the smaller one of step and warmup_steps has the power -0.5: compare the two arguments of min",
        "min(decrease, increase)",
        "min(step, warmup_steps) ** -0.5",
    ),
    mistake(
        "factor is added: it must multiply the learning rate",
        "factor * d_model**-0.5 * min(decrease, increase)",
        "factor + d_model**-0.5 * min(decrease, increase)",
    ),
)
def warmup(d_model: Any, warmup_steps: Any = 4000, factor: Any = 1.0) -> Any:
    """Return the schedule of the paper: a function of the step that returns the learning rate."""

    def schedule(step: Any) -> Any:
        decrease = step**-0.5
        increase = step * warmup_steps**-1.5
        return factor * d_model**-0.5 * min(decrease, increase)

    return schedule


@plain(
    "cosine-schedule",
    mistake(
        "the learning rate increases again after total_steps: limit done to at most 1",
        f"min(1.0, {PART})",
        PART,
    ),
    mistake("the divisor 2 is left out", ") / 2", ")"),
    mistake("the sign of the cosine is wrong", "1 + math", "1 - math"),
    mistake(
        "the cosine is not moved up by 1: the learning rate becomes negative",
        "(1 + math.cos(math.pi * done)) / 2",
        "math.cos(math.pi * done)",
    ),
    mistake(
        "warmup_steps is ignored in the second part: done must be 0 at warmup_steps",
        PART,
        "step / total_steps",
    ),
    mistake(
        "the decrease is divided by total_steps instead of total_steps - warmup_steps",
        "/ (total_steps - warmup_steps)",
        "/ total_steps",
    ),
    mistake(
        "warmup_steps is not subtracted from step in the second part", "(step - warmup_steps) /", "step /"
    ),
    mistake(
        "the cosine runs through a whole period, 2 pi, instead of half a period",
        "math.pi * done",
        "2 * math.pi * done",
    ),
    mistake(
        "the cosine runs through a quarter of a period, pi / 2, instead of half a period",
        "math.pi * done",
        "math.pi / 2 * done",
    ),
    mistake(
        "the cosine runs through a quarter of a period, and is not moved up by 1",
        "(1 + math.cos(math.pi * done)) / 2",
        "math.cos(math.pi / 2 * done)",
    ),
    mistake("pi is left out", "math.pi * done", "done"),
    mistake(
        "there is no warmup: the learning rate is peak from the first step",
        "peak * step / warmup_steps",
        "peak",
    ),
    mistake("the warmup is left out: the cosine begins at step 0", "step < warmup_steps", "False"),
    mistake(
        "the warmup comes one step too late: it counts from step - 1",
        "peak * step / warmup_steps",
        "peak * (step - 1) / warmup_steps",
    ),
    mistake(
        "the warmup is one step too early: it counts from step + 1",
        "peak * step / warmup_steps",
        "peak * (step + 1) / warmup_steps",
    ),
    mistake("the decrease comes one step too late", "(step - warmup_steps) /", "(step - warmup_steps - 1) /"),
    mistake("the sine is used instead of the cosine", "math.cos", "math.sin"),
    mistake("the decrease is linear instead of a cosine", "(1 + math.cos(math.pi * done)) / 2", "(1 - done)"),
    mistake("peak is left out in the second part", "return peak * (1", "return (1"),
    mistake(
        "the parentheses are wrong: peak and the cosine are added, and peak must multiply their sum",
        "peak * (1 + math.cos(math.pi * done)) / 2",
        "(peak + math.cos(math.pi * done)) / 2",
    ),
    mistake(
        "the parentheses are wrong: only the cosine is divided by 2",
        "(1 + math.cos(math.pi * done)) / 2",
        "(1 + math.cos(math.pi * done) / 2)",
    ),
    mistake("the angle is in degrees: math.cos takes radians", "math.pi * done", "180 * done"),
    mistake(
        "the cosine begins again after total_steps (a restart): the learning rate stays 0",
        f"min(1.0, {PART})",
        f"({PART}) % 1",
    ),
    mistake(
        "the warmup has the form of a cosine too: it must be linear",
        "peak * step / warmup_steps",
        "peak * (1 - math.cos(math.pi * step / warmup_steps)) / 2",
    ),
    mistake(
        "the warmup multiplies a cosine that begins at step 0: the cosine begins at warmup_steps",
        "            return peak * step / warmup_steps",
        "            return peak * step / warmup_steps * (1 + math.cos(math.pi * step / total_steps)) / 2",
    ),
    mistake(
        "the warmup multiplies a cosine that begins at step 0, and this cosine continues after it: the "
        "cosine "
        "begins at warmup_steps",
        "            return peak * step / warmup_steps",
        "            return peak * step / warmup_steps * (1 + math.cos(math.pi * step / total_steps)) / 2",
        PART,
        "step / total_steps",
    ),
    mistake(
        "after total_steps the learning rate is peak: it stays 0",
        f"        done = min(1.0, {PART})",
        f"        done = {PART}\n        if done > 1:\n            return peak",
    ),
    mistake("peak is left out in the warmup", "peak * step / warmup_steps", "step / warmup_steps"),
    mistake(
        "peak is left out in both parts",
        "peak * step / warmup_steps",
        "step / warmup_steps",
        "return peak * (1",
        "return (1",
    ),
    mistake(
        "the warmup divides by total_steps: it ends at warmup_steps",
        "peak * step / warmup_steps",
        "peak * step / total_steps",
    ),
    mistake(
        "the decrease is exponential instead of a cosine",
        "(1 + math.cos(math.pi * done)) / 2",
        "math.exp(-done)",
    ),
    mistake(
        "the absolute value of the cosine is used: it must be moved up by 1 and halved",
        "(1 + math.cos(math.pi * done)) / 2",
        "abs(math.cos(math.pi * done))",
    ),
    mistake(
        "negative values of the cosine are set to 0: it must be moved up by 1 and halved",
        "(1 + math.cos(math.pi * done)) / 2",
        "max(0.0, math.cos(math.pi * done))",
    ),
)
def cosine(peak: Any, total_steps: Any, warmup_steps: Any = 0) -> Any:
    """Return a schedule that decreases like a cosine: a function of the step."""

    def schedule(step: Any) -> Any:
        if step < warmup_steps:
            return peak * step / warmup_steps
        done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))
        return peak * (1 + math.cos(math.pi * done)) / 2

    return schedule


@plain(
    "clip-gradient",
    mistake(
        "the condition is left out: a gradient with a small norm is scaled up to max_norm",
        "norm > max_norm",
        "True",
    ),
    mistake("the numerator and the denominator are exchanged", "max_norm / norm", "norm / max_norm"),
    mistake("the square root of the sum of squares is left out", NORM, "(grads**2).sum()"),
    mistake(
        "the sum of the absolute values is used instead of the Euclidean norm", NORM, "np.abs(grads).sum()"
    ),
    mistake("the largest absolute value is used instead of the Euclidean norm", NORM, "np.abs(grads).max()"),
    mistake("the squares are averaged instead of summed", NORM, "math.sqrt((grads**2).mean())"),
    mistake(
        "the norm is the root of the square of the sum: square each entry before the sum",
        NORM,
        "abs(grads.sum())",
    ),
    mistake(
        "every entry is clipped separately, which changes the direction: all must be multiplied by "
        "the same number",
        "grads *= max_norm / norm",
        "np.clip(grads, -max_norm, max_norm, out=grads)",
    ),
    mistake(
        "every entry is clipped separately, which changes the direction: all must be multiplied by "
        "the same number",
        "norm > max_norm",
        "True",
        "grads *= max_norm / norm",
        "np.clip(grads, -max_norm, max_norm, out=grads)",
    ),
    mistake("max_norm is left out: the gradient is scaled to the norm 1", "max_norm / norm", "1 / norm"),
    mistake("max_norm is not divided by the norm", "max_norm / norm", "max_norm"),
    mistake(
        "the norm after scaling is returned, and must be the norm before",
        "return norm",
        "return min(norm, max_norm)",
    ),
    mistake(
        "the gradient is not changed: is the result stored in a new array instead of changed in place (*=)?",
        "grads *= max_norm / norm",
        "pass",
    ),
    mistake(
        "the comparison is reversed: small gradients are scaled and large ones are not",
        "norm > max_norm",
        "norm < max_norm",
    ),
    mistake("the gradient is scaled twice", "max_norm / norm", "(max_norm / norm) ** 2"),
    mistake(
        "a small number is added to the norm, as in PyTorch: divide by the norm itself",
        "max_norm / norm",
        "max_norm / (norm + 1e-6)",
    ),
    mistake(
        "max_norm is returned: the norm before scaling must be returned", "return norm", "return max_norm"
    ),
    mistake("the square of the norm is returned", "return norm", "return norm**2"),
    mistake(
        "the scale is returned: the norm before scaling must be returned",
        "return norm",
        "return min(1.0, max_norm / norm)",
    ),
    mistake(
        "only entries above max_norm are clipped: all entries must be multiplied by the same number",
        "grads *= max_norm / norm",
        "grads[grads > max_norm] = max_norm",
    ),
    mistake(
        "entries whose absolute value is above max_norm are set to 0: all must be multiplied by the same "
        "number",
        "grads *= max_norm / norm",
        "grads[abs(grads) > max_norm] = 0",
    ),
    mistake(
        "the excess of the norm is subtracted: the entries must be multiplied",
        "grads *= max_norm / norm",
        "grads -= norm - max_norm",
    ),
    mistake(
        "the gradient is divided by the norm minus max_norm: it must be multiplied by their quotient",
        "grads *= max_norm / norm",
        "grads /= norm - max_norm",
    ),
    mistake("the gradient is set to 0 if its norm is too large", "grads *= max_norm / norm", "grads *= 0"),
    mistake(
        "every entry of the gradient is replaced by max_norm: the direction must remain",
        "grads *= max_norm / norm",
        "grads[:] = max_norm",
    ),
    mistake(
        "it is divided by the square of the norm: the root is left out only in the scale",
        "max_norm / norm",
        "max_norm / norm**2",
    ),
    mistake("the root of the scale is used", "max_norm / norm", "math.sqrt(max_norm / norm)"),
)
def clip_global_norm(grads: Any, max_norm: Any) -> Any:
    """Scale the gradients down if their norm is larger than the limit, and return the norm."""
    norm = math.sqrt((grads**2).sum())
    if norm > max_norm:
        grads *= max_norm / norm
    return norm
