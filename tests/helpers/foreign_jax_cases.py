"""Functions of JAX with a hand-written derivative, right and wrong."""

import jax
import jax.numpy as jnp
import numpy as np
from foreign_case import ForeignCase

CASES = []


def normal(*shapes):
    """Return a function that draws normally distributed arrays of NumPy, always the same ones."""
    return lambda: tuple(np.random.default_rng(3).standard_normal(shape) for shape in shapes)


def on_jax(draw):
    """Return a function that draws arrays of JAX, in the data type that JAX is set to."""
    return lambda: tuple(jnp.asarray(x) for x in draw())


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


def right(name, thing, inputs, **more):
    """Add a case whose gradients are correct."""
    CASES.append(ForeignCase(name, thing, on_jax(inputs), **more))


def wrong(name, thing, inputs, row, words, **more):
    """Add a case with one mistake, the row of the report that finds it, and words of the diagnosis."""
    CASES.append(ForeignCase(name, thing, on_jax(inputs), row, words, **more))


# ---------------------------------------------------------------------------------------------------------
# Causal attention


def causal_weights(q, k):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    return jax.nn.softmax(jnp.where(np.tri(len(q), dtype=bool), scores, -jnp.inf))


def attention(q, k, v):
    return causal_weights(q, k) @ v


def attention_forward(q, k, v):
    return attention(q, k, v), (q, k, v)


def attention_gradient(weights, q, k, v, dy, scale=None):
    p = weights(q, k)
    dp = dy @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    return ds @ k, ds.T @ q, p.T @ dy


def without_mask(saved, dy):
    return attention_gradient(lambda q, k: jax.nn.softmax(q @ k.T / np.sqrt(q.shape[-1])), *saved, dy)


def exchanged(saved, dy):
    dq, dk, dv = attention_gradient(causal_weights, *saved, dy)
    return dk, dq, dv


def make_attention(backward):
    return with_vjp(attention, attention_forward, backward)


QKV = normal((4, 3), (4, 3), (4, 3))
right("attention", make_attention(lambda saved, dy: attention_gradient(causal_weights, *saved, dy)), QKV)
wrong("attention: mask", make_attention(without_mask), QKV, "input 0", "")
wrong(
    "attention: scale",
    make_attention(lambda saved, dy: attention_gradient(causal_weights, *saved, dy, scale=1)),
    QKV,
    "input 0",
    "√3",
)
wrong("attention: exchanged", make_attention(exchanged), QKV, "input 0", "the gradient of input 1")

# ---------------------------------------------------------------------------------------------------------
# Softmax, a linear layer, layer normalization


def softmax(x):
    e = jnp.exp(x)
    return e / e.sum(-1, keepdims=True)


def make_softmax(backward):
    return with_vjp(softmax, lambda x: (softmax(x), softmax(x)), backward)


def in_float32(y, dy):
    y, dy = y.astype(jnp.float32), dy.astype(jnp.float32)
    return ((y * (dy - (dy * y).sum(-1, keepdims=True))).astype(jnp.float64),)


X = normal((3, 4))
right("softmax", make_softmax(lambda y, dy: (y * (dy - (dy * y).sum(-1, keepdims=True)),)), X)
wrong(
    "softmax: axis",
    make_softmax(lambda y, dy: (y * (dy - (dy * y).sum(0, keepdims=True)),)),
    X,
    "input 0",
    "",
)
wrong("softmax: diagonal", make_softmax(lambda y, dy: (y * (1 - y) * dy,)), X, "input 0", "")
wrong("softmax: float32", make_softmax(in_float32), X, "input 0", "float32")
wrong("softmax: None", make_softmax(lambda y, dy: (None,)), X, "input 0", "every entry is 0")
wrong("softmax: count", make_softmax(lambda y, dy: (dy, dy)), X, "backward", "tuple")
wrong("softmax: shape", make_softmax(lambda y, dy: (dy.sum(0),)), X, "backward", "shape")


def linear(x, w, b):
    return x @ w + b


def make_linear(backward):
    return with_vjp(linear, lambda x, w, b: (linear(x, w, b), (x, w)), lambda saved, dy: backward(*saved, dy))


XWB = normal((5, 4), (4, 4), (4,))
right("linear", make_linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(0))), XWB)
wrong(
    "linear: mean", make_linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.mean(0))), XWB, "input 2", "averaged"
)
wrong("linear: transposed", make_linear(lambda x, w, dy: (dy @ w, x.T @ dy, dy.sum(0))), XWB, "input 0", "")
wrong("linear: twice", make_linear(lambda x, w, dy: (dy @ w.T, 2 * x.T @ dy, dy.sum(0))), XWB, "input 1", "2")


def normalized(x):
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)


def norm_forward(x):
    rstd = 1 / jnp.sqrt(((x - x.mean(-1, keepdims=True)) ** 2).mean(-1, keepdims=True) + 1e-5)
    return normalized(x), (normalized(x), rstd)


def norm_backward(saved, dy):
    n, rstd = saved
    return (rstd * (dy - dy.mean(-1, keepdims=True) - n * (dy * n).mean(-1, keepdims=True)),)


def without_variance(saved, dy):
    _, rstd = saved
    return (rstd * (dy - dy.mean(-1, keepdims=True)),)


right("layer norm", with_vjp(normalized, norm_forward, norm_backward), normal((3, 6)))
wrong(
    "layer norm: variance",
    with_vjp(normalized, norm_forward, without_variance),
    normal((3, 6)),
    "input 0",
    "",
)

# ---------------------------------------------------------------------------------------------------------
# Rules of custom_jvp, several outputs, nested inputs


def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


def product(x, y):
    return x * y


def rule(derivative):
    """Return the rule of a function of one argument."""
    return lambda inputs, directions: (log1pexp(*inputs), derivative(*inputs, *directions))


right("log1pexp", with_jvp(log1pexp, rule(lambda x, v: v * jax.nn.sigmoid(x))), X)
wrong("log1pexp: sign", with_jvp(log1pexp, rule(lambda x, v: v * jax.nn.sigmoid(-x))), X, "input 0", "")
wrong(
    "log1pexp: linear",
    with_jvp(log1pexp, rule(lambda x, v: v * v * jax.nn.sigmoid(x))),
    X,
    "backward",
    "linear",
)
right(
    "product",
    with_jvp(product, lambda xy, v: (product(*xy), v[0] * xy[1] + xy[0] * v[1])),
    normal((3,), (3,)),
)
wrong(
    "product: term",
    with_jvp(product, lambda xy, v: (product(*xy), v[0] * xy[1])),
    normal((3,), (3,)),
    "input 1",
    "every entry is 0",
)


def moments(x):
    return x.mean(0), (x * x).mean(0)


def make_moments(factor):
    def backward(x, dy):
        return ((dy[0] + factor * x * dy[1]) / len(x),)

    return with_vjp(moments, lambda x: (moments(x), x), backward)


right("moments", make_moments(2), X)
wrong("moments: factor", make_moments(1), X, "input 0", "")


class Residuals:
    """A place outside of JAX for the residuals of the last call."""

    x = None


def keep_outside(x):
    Residuals.x = x
    return x * x, None


right("pytrees", lambda parameters, x: jnp.tanh(x @ parameters["w"] + parameters["b"]), X)
CASES[-1] = ForeignCase(
    "pytrees",
    CASES[-1].thing,
    lambda: ({"w": jnp.ones((4, 2)) * 0.3, "b": jnp.arange(2.0)}, jnp.asarray(X()[0])),
)
wrong(
    "square: outside",
    with_vjp(lambda x: x * x, keep_outside, lambda _, dy: (2 * Residuals.x * dy,)),
    X,
    "input 0",
    "runs a second time before backward",
)
right("relu", jax.nn.relu, X)
