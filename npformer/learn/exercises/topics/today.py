"""Chapter 23: RMS norm, rotary positions, gated networks, shared keys, and AdamW."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.functional import masks
from npformer.learn.exercises.exercise import Functions, Gradients, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import output, pair_trial, pairs
from npformer.learn.exercises.topics.training import adam_step
from npformer.nn import Linear
from npformer.training.optimizer import Adam, cosine


def rotate_interleaved(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate neighbouring numbers of x: the solution."""
    y, _ = F.rotate(x, cos, sin, "interleaved")
    return y


def _rotations(name: str) -> Callable[[Functions, np.random.Generator], dict[str, Any]]:
    """Return a trial of a rotation at the first positions and at later ones."""

    def run(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
        rotate, x = getattr(own, name), rng.standard_normal((2, 3, 4, 6))  # (B, H, T, K)
        return {
            "y of the positions 0 to 3": output(rotate(x, *F.rotary_table(np.arange(4), 6))),
            "y of the positions 7 to 10": output(rotate(x, *F.rotary_table(np.arange(7, 11), 6))),
            "y of one vector at position 1": output(rotate(x[0, 0, :1], *F.rotary_table(np.arange(1, 2), 6))),
        }

    return run


def _rotation_trial(label: str, first: int, *shape: int) -> Gradients:
    """Return a gradient check of the rotation of an array (..., T, K) from the position `first` on."""

    def make(own: Functions, rng: np.random.Generator) -> tuple[Any, Array]:
        def rotate(x: Array) -> tuple[Array, Any]:
            tables = F.rotary_table(np.arange(first, first + shape[-2]), shape[-1])
            cos, sin = (table.astype(x.real.dtype) for table in tables)  # (T, K/2)
            return F.rotate(x, cos, sin)

        return (rotate, own.rotate_backward), rng.standard_normal(shape)

    return Gradients(label, make)


def causal_mask(length: int, window: int) -> Array:
    """Return the causal mask with a window: the solution."""
    return masks.causal_mask(length, np.zeros(1), window=window)


def adamw_step(adam: Any, lr: float, weight_decay: float, decays: Array) -> None:
    """Let parameters decay and make a step of Adam: the solution."""
    adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0)
    adam_step(adam, lr)


def _shared_trial(label: str, n_heads: int, n_repeats: int) -> Gradients:
    """Return a gradient check of n_heads heads that are repeated."""
    return pair_trial(label, F.repeat_heads, "repeat_heads_backward", (2, n_heads, 3, 4), n_repeats=n_repeats)


def _window_masks(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    sizes = ((6, 3), (5, 2), (4, 1), (3, 7))
    return {f"causal_mask({length}, {window})": own.causal_mask(length, window) for length, window in sizes}


def _decayed_steps(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    model = Linear(4, 3, rng=rng, dtype=np.float64)
    adam, decays = Adam(model, eps=1e-3), np.arange(15) < 12  # the weight decays, and the bias does not
    model.values[12:] = (0.5, -1.0, 2.0)
    result: dict[str, Any] = {}
    for step in range(1, 4):
        adam.model.grads[...] = rng.standard_normal(15)
        own.adamw_step(adam, 0.03, 0.4, decays)
        for name, value in (("t", adam.t), ("m", adam.m), ("v", adam.v), ("values", model.values)):
            result[f"{name} after step {step}"] = np.array(value)
    return result


def _rates_with_a_floor(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    schedule, steps = own.cosine(0.3, 20, 5, 0.08), (1, 2, 4, 5, 6, 10, 15, 19, 20, 30)
    return {
        "the rates of cosine(0.3, 20, 5, 0.08)": np.array([schedule(step) for step in steps]),
        "the rates of cosine(0.7, 8, 0, 0.1)": np.array([own.cosine(0.7, 8, 0, 0.1)(s) for s in range(1, 9)]),
    }


TODAY = exercises(
    r'''
=== 23 rms-norm-backward: the backward pass of RMS norm
import numpy as np


def rms_norm_backward(dy, cache):
    """Return the gradients of y = gain · xhat, where xhat = x / sqrt(mean(x²) + eps) over the last axis.

    dy     the gradient of y, of shape (..., D)
    cache  .xhat (..., D), .rrms (..., 1) = 1 / sqrt(mean(x²) + eps), .gain (D,)
    Returns (dx, dgain), with shapes (..., D) and (D,).
    """
    xhat, rrms, gain = cache
    # first dgain, which is a sum over all rows
    # then dxhat, and from it dx: xhat depends on x directly and through the mean of x²
    # solution
    rows = tuple(range(dy.ndim - 1))
    dgain = (dy * xhat).sum(rows)
    dxhat = dy * gain
    along_xhat = (dxhat * xhat).mean(-1, keepdims=True)
    dx = rrms * (dxhat - xhat * along_xhat)
    return dx, dgain
--- dgain is a sum over all axes except the last. dxhat = dy · gain.
--- If you multiply a row of x by a positive number, xhat hardly changes. So each row of dx must be nearly
    orthogonal to xhat. One term must be subtracted from dxhat.
--- dx = rrms · (dxhat - xhat · mean(dxhat · xhat)), with the mean over the last axis.

=== 23 rotate: rotary positions, forward
import numpy as np


def rotate(x, cos, sin):
    """Rotate each pair (a, b) of x to (a cos - b sin, a sin + b cos).

    Number i of the first half of a vector and number i of its second half form pair i (the layout "halves").
    x         queries or keys, of shape (..., T, K)
    cos, sin  the cosine and the sine of the angle of each position and each pair, of shape (T, K/2)
    Returns y (..., T, K), where the numbers of a pair are at the places that they have in x.
    """
    half = x.shape[-1] // 2
    # solution
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
--- a = x[..., :half] is the first half, with the first number of each pair. What is b?
--- Compute the two halves of y, each of shape (..., T, K/2), from a and b.
--- np.concatenate([a * cos - b * sin, ...], -1).

=== 23 rotate-backward: the backward pass of rotary positions
import numpy as np


def rotate_backward(dy, cache):
    """Return the gradient of y, where each pair (a, b) of x became (a cos - b sin, a sin + b cos).

    Number i of the first half of a vector and number i of its second half form pair i (the layout "halves").
    dy     the gradient of y, of shape (..., T, K)
    cache  .cos and .sin (T, K/2), and .layout, which is "halves"
    Returns dx (..., T, K).
    """
    cos, sin, layout = cache
    half = dy.shape[-1] // 2
    # solution
    a, b = dy[..., :half], dy[..., half:]
    return np.concatenate([a * cos + b * sin, b * cos - a * sin], -1)
--- Split dy into the gradients of the two halves of y. The number a influences both halves. So its gradient
    has two terms. The same is true for b.
--- The factor of a in a cos - b sin is cos, and in a sin + b cos it is sin. What are the factors of b?
--- The gradient of a is da = dy_a cos + dy_b sin, where dy_a and dy_b are the halves of dy. The whole result
    is the rotation in the opposite direction.

=== 23 interleaved-rotation: rotary positions for pairs of neighbours
import numpy as np


def rotate_interleaved(x, cos, sin):
    """Rotate each pair (a, b) of x to (a cos - b sin, a sin + b cos).

    The neighbours 2i and 2i + 1 of a vector form pair i (the layout "interleaved").
    x         queries or keys, of shape (..., T, K)
    cos, sin  the cosine and the sine of the angle of each position and each pair, of shape (T, K/2)
    Returns y (..., T, K), where the numbers of a pair are at the places that they have in x.
    """
    # solution
    a, b = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    y[..., 0::2] = a * cos - b * sin
    y[..., 1::2] = a * sin + b * cos
    return y
--- x[..., 0::2] are the first numbers of all pairs. How do you get the second ones?
--- Make y with np.empty_like(x). Assign to every second number of y, from number 0 on, and then to the
    others.
--- y[..., 0::2] = a * cos - b * sin, and y[..., 1::2] is the other number of each pair.

=== 23 swiglu-backward: the backward pass of a gated activation
import numpy as np


def swiglu_backward(dy, cache):
    """Return the gradients of y = swish(gate) · value, where swish(u) = u · sigmoid(u).

    dy     the gradient of y, of shape (..., F)
    cache  .value (..., F), .activated (..., F) = swish(gate), and .activation, which is the pair (gate, s)
           with s = sigmoid(gate), both of shape (..., F)
    Returns (dgate, dvalue), both of shape (..., F).
    """
    gate, s = cache.activation
    # solution
    dvalue = dy * cache.activated
    dgate = dy * cache.value * (s + gate * s * (1 - s))
    return dgate, dvalue
--- y is a product. The gradient of one factor is dy times the other factor.
--- dvalue = dy · swish(gate). For dgate, you need the derivative of swish as well.
--- swish(u) = u · s is a product too, and s' = s (1 - s). So swish' = s + u · s'.

=== 23 shared-keys-backward: the gradient of keys that heads share
import numpy as np


def repeat_heads_backward(dy, cache):
    """Return the gradient of x, whose heads were repeated: head g of x became the heads g R .. g R + R - 1.

    For R = 2, the heads of y were x[:, 0], x[:, 0], x[:, 1], x[:, 1], and so on.
    dy     the gradient of y, of shape (B, H, S, K), where H = G R
    cache  the number R of copies of each head
    Returns dx (B, G, S, K).
    """
    n_repeats = cache
    batch, n_heads, length, width = dy.shape
    # solution
    return dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)
--- Each head of x was used R times. What is the gradient of an array that is used several times?
--- Reshape dy so that the copies of a head have an axis of their own. The copies of a head are next to each
    other.
--- The shape is (batch, n_heads // n_repeats, n_repeats, length, width). Then sum over one axis.

=== 23 window-mask: a causal mask with a window
import numpy as np


def causal_mask(length, window):
    """Return the mask that lets each position attend to itself and to the window - 1 positions before it.

    length  the number T of positions
    window  the number of positions to which a position attends, its own included. At the beginning of the
            text there are fewer
    Returns a bool array (T, T). Row t belongs to query t, and column s to key s. True means that query t may
    attend to key s.
    """
    # solution
    query, key = np.arange(length)[:, None], np.arange(length)
    return (query >= key) & (query - key < window)
--- Write the positions of the queries as a column (T, 1), and those of the keys as a row (T,). A comparison
    of the two has the shape (T, T).
--- Two conditions must hold: the key is not after the query, and it is not before the window.
--- The distance query - key goes from 0 to window - 1.

=== 23 adamw-step: one step of AdamW
import numpy as np


def adamw_step(adam, lr, weight_decay, decays):
    """Make one step of AdamW.

        value = value - lr · weight_decay · value     where decays is True
        t = t + 1
        m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g²
        value = value - lr · (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

    adam          .betas (b1, b2); .eps; .t, the number of steps that were made before; .m and .v (P,);
                  .model.values and .model.grads (P,), the parameters and their gradients g
    weight_decay  a number
    decays        bool (P,), True at the parameters that decay
    Changes adam.t, adam.m, adam.v and adam.model.values in place (values -= ...). Returns nothing.
    """
    beta1, beta2 = adam.betas
    g = adam.model.grads
    # solution
    adam.model.values -= lr * weight_decay * np.where(decays, adam.model.values, 0)
    adam.t += 1
    adam.m[...] = beta1 * adam.m + (1 - beta1) * g
    adam.v[...] = beta2 * adam.v + (1 - beta2) * g * g
    m_hat = adam.m / (1 - beta1**adam.t)
    v_hat = adam.v / (1 - beta2**adam.t)
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)
--- Begin with the decay. It changes the values only. The gradient g stays as it is.
--- np.where(decays, adam.model.values, 0) are the values of the parameters that decay.
--- adam.model.values -= lr * weight_decay * np.where(...). Then make a step of Adam, as in the exercise
    adam-step.

=== 23 cosine-floor: a cosine schedule that ends at a floor
import math


def cosine(peak, total_steps, warmup_steps, floor):
    """Return a schedule that increases linearly to the peak and then falls to the floor like half a cosine.

    Before warmup_steps, the learning rate is peak · step / warmup_steps. At warmup_steps it is peak. Then it
    falls to floor at total_steps, and it stays there.
    Returns a function that takes the number of the step, counted from 1, and returns the learning rate.
    """
    # solution
    def schedule(step):
        if step < warmup_steps:
            return peak * step / warmup_steps
        done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))
        return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2
    return schedule
--- done = (step - warmup_steps) / (total_steps - warmup_steps) grows from 0 to 1. Limit it to 1.
--- (1 + cos(pi · done)) / 2 falls from 1 to 0. Which number must be multiplied by it, so that the rate falls
    from peak to floor?
--- After the warm-up, the rate is floor + (peak - floor) · (1 + cos(pi · done)) / 2.
''',
    {
        "rms-norm-backward": pairs(F.rms_norm, ("", (7, 5), (5,)), ("x (2, 3, 5)", (2, 3, 5), (5,))),
        "rotate": Task(F.rotate, Values("", _rotations("rotate"))),
        "rotate-backward": Task(
            F.rotate_backward, _rotation_trial("", 0, 4, 6), _rotation_trial("x (2, 3, 4, 6)", 5, 2, 3, 4, 6)
        ),
        "interleaved-rotation": Task(rotate_interleaved, Values("", _rotations("rotate_interleaved"))),
        "swiglu-backward": pairs(F.swiglu, ("", (4, 6), (4, 6)), ("three axes", (2, 3, 5), (2, 3, 5))),
        "shared-keys-backward": Task(
            F.repeat_heads_backward,
            _shared_trial("two copies", 2, 2),
            _shared_trial("three copies", 2, 3),
            _shared_trial("one copy", 3, 1),
            _shared_trial("one shared head", 1, 4),
        ),
        "window-mask": Task(causal_mask, Values("", _window_masks, hidden=hidden_inputs.window_masks)),
        "adamw-step": Task(
            adamw_step, Values("", _decayed_steps, numbers=((0.03, "lr"), (0.4, "weight_decay")))
        ),
        "cosine-floor": Task(
            cosine,
            Values(
                "",
                _rates_with_a_floor,
                numbers=((0.3, "peak"), (0.08, "floor")),
                hidden=hidden_inputs.rates_with_a_floor,
            ),
        ),
    },
)
