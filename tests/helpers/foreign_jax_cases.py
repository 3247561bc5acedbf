"""Functions of JAX with a hand-written derivative, right and wrong."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from foreign_case import ForeignCase

CASES = []


def draw(*shapes):
    """Draw normally distributed arrays, always the same ones, in the data type that JAX is set to."""
    rng = np.random.default_rng(3)
    return tuple(jnp.asarray(rng.standard_normal(shape)) for shape in shapes)


def with_vjp(function, forward, backward):
    """Return the function with forward(*x) -> (y, residuals) and backward(residuals, dy) -> dx."""
    wrapped = jax.custom_vjp(lambda *inputs: function(*inputs))
    wrapped.defvjp(forward, backward)
    return wrapped


def with_jvp(function, rule):
    """Return the function with rule(inputs, directions) -> (y, derivative along the directions)."""
    wrapped = jax.custom_jvp(lambda *inputs: function(*inputs))
    wrapped.defjvp(rule)
    return wrapped


def case(name, thing, shapes, row="", words=""):
    """Add a case: with the row of the report that finds its mistake and words of the diagnosis, if any."""
    CASES.append(ForeignCase(name, thing, lambda: draw(*shapes), row, words))


def cases(name, make, shapes, backward, mistakes):
    """Add a case for a right function, and one for each mistake in its backward pass.

    Args:
        name: The name of the function.
        make: A function from a backward pass to the function.
        shapes: The shapes of the inputs.
        backward: The right backward pass.
        mistakes: {name: (a wrong backward pass, the row that finds it, words of the diagnosis)}.
    """
    case(name, make(backward), shapes)
    for mistake, (wrong, row, words) in mistakes.items():
        case(f"{name}: {mistake}", make(wrong), shapes, row, words)


# ---------------------------------------------------------------------------------------------------------
# Causal attention


def plain_weights(q, k):
    return jax.nn.softmax(q @ k.T / np.sqrt(q.shape[-1]))


def causal_weights(q, k):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    return jax.nn.softmax(jnp.where(np.tri(len(q), dtype=bool), scores, -jnp.inf))


def attention(q, k, v):
    return causal_weights(q, k) @ v


def make_attention(backward):
    return with_vjp(attention, lambda *qkv: (attention(*qkv), qkv), backward)


def attention_gradient(saved, dy, *, weights=causal_weights, scale=3**-0.5):
    q, k, v = saved
    p = weights(q, k)
    dp = dy @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
    return ds @ k, ds.T @ q, p.T @ dy


def exchanged(saved, dy):
    dq, dk, dv = attention_gradient(saved, dy)
    return dk, dq, dv


cases(
    "attention",
    make_attention,
    [(4, 3)] * 3,
    attention_gradient,
    {
        "mask": (partial(attention_gradient, weights=plain_weights), "input 0", ""),
        "scale": (partial(attention_gradient, scale=1), "input 0", "√3"),
        "exchanged": (exchanged, "input 0", "the gradient of input 1"),
    },
)

# ---------------------------------------------------------------------------------------------------------
# Softmax, a linear layer, layer normalization


def softmax(x):
    e = jnp.exp(x)
    return e / e.sum(-1, keepdims=True)


def softmax_gradient(y, dy, axis=-1):
    return (y * (dy - (dy * y).sum(axis, keepdims=True)),)


def in_float32(y, dy):
    return (softmax_gradient(y.astype(jnp.float32), dy.astype(jnp.float32))[0].astype(jnp.float64),)


X = [(3, 4)]
cases(
    "softmax",
    lambda backward: with_vjp(softmax, lambda x: (softmax(x), softmax(x)), backward),
    X,
    softmax_gradient,
    {
        "axis": (partial(softmax_gradient, axis=0), "input 0", ""),
        "diagonal": (lambda y, dy: (y * (1 - y) * dy,), "input 0", ""),
        "float32": (in_float32, "input 0", "float32"),
        "None": (lambda y, dy: (None,), "input 0", "every entry is 0"),
        "count": (lambda y, dy: (dy, dy), "backward", "tuple"),
        "shape": (lambda y, dy: (dy.sum(0),), "backward", "shape"),
    },
)


def linear(x, w, b):
    return x @ w + b


cases(
    "linear",
    lambda back: with_vjp(
        linear, lambda x, w, b: (linear(x, w, b), (x, w)), lambda saved, dy: back(*saved, dy)
    ),
    [(5, 4), (4, 4), (4,)],
    lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(0)),
    {
        "mean": (lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.mean(0)), "input 2", "averaged"),
        "transposed": (lambda x, w, dy: (dy @ w, x.T @ dy, dy.sum(0)), "input 0", ""),
        "twice": (lambda x, w, dy: (dy @ w.T, 2 * x.T @ dy, dy.sum(0)), "input 1", "2"),
    },
)


def norm_forward(x):
    centered = x - x.mean(-1, keepdims=True)
    rstd = 1 / jnp.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
    return centered * rstd, (centered * rstd, rstd)


def norm_backward(saved, dy):
    n, rstd = saved
    return (rstd * (dy - dy.mean(-1, keepdims=True) - n * (dy * n).mean(-1, keepdims=True)),)


def without_variance(saved, dy):
    return (saved[1] * (dy - dy.mean(-1, keepdims=True)),)


cases(
    "layer norm",
    lambda backward: with_vjp(lambda x: norm_forward(x)[0], norm_forward, backward),
    [(3, 6)],
    norm_backward,
    {"variance": (without_variance, "input 0", "")},
)

# ---------------------------------------------------------------------------------------------------------
# Rules of custom_jvp, several outputs, nested inputs


def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


cases(
    "log1pexp",
    lambda derivative: with_jvp(log1pexp, lambda x, v: (log1pexp(*x), derivative(*x, *v))),
    X,
    lambda x, v: v * jax.nn.sigmoid(x),
    {
        "sign": (lambda x, v: v * jax.nn.sigmoid(-x), "input 0", ""),
        "linear": (lambda x, v: v * v * jax.nn.sigmoid(x), "backward", "linear"),
    },
)
cases(
    "product",
    lambda derivative: with_jvp(lambda x, y: x * y, lambda xy, v: (xy[0] * xy[1], derivative(*xy, *v))),
    [(3,), (3,)],
    lambda x, y, dx, dy: dx * y + x * dy,
    {"term": (lambda x, y, dx, dy: dx * y, "input 1", "every entry is 0")},
)


def moments(x):
    return x.mean(0), (x * x).mean(0)


cases(
    "moments",
    lambda backward: with_vjp(moments, lambda x: (moments(x), x), backward),
    X,
    lambda x, dy: ((dy[0] + 2 * x * dy[1]) / len(x),),
    {"factor": (lambda x, dy: ((dy[0] + x * dy[1]) / len(x),), "input 0", "")},
)


class Residuals:
    """A place outside of JAX for the residuals of the last call."""

    x = None


def keep_outside(x):
    Residuals.x = x
    return x * x, None


case(
    "square: outside",
    with_vjp(lambda x: x * x, keep_outside, lambda _, dy: (2 * Residuals.x * dy,)),
    X,
    "input 0",
    "runs a second time before backward",
)
case("relu", jax.nn.relu, X)
CASES.append(
    ForeignCase(
        "pytrees",
        lambda parameters, x: jnp.tanh(x @ parameters["w"] + parameters["b"]),
        lambda: ({"w": jnp.ones((4, 2)) * 0.3, "b": jnp.arange(2.0)}, *draw(*X)),
    )
)
