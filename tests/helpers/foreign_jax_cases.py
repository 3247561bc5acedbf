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
    return lambda: jax.tree_util.tree_map(jnp.asarray, draw())


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


def attention_gradients(q, k, v, dy, weights=causal_weights, scaled=True):
    p = weights(q, k)
    dp = dy @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * (1 / np.sqrt(q.shape[-1]) if scaled else 1)
    return ds @ k, ds.T @ q, p.T @ dy


def without_mask(q, k, v, dy):
    return attention_gradients(q, k, v, dy, lambda q, k: jax.nn.softmax(q @ k.T / np.sqrt(q.shape[-1])))


def without_scale(q, k, v, dy):
    return attention_gradients(q, k, v, dy, scaled=False)


def exchanged(q, k, v, dy):
    dq, dk, dv = attention_gradients(q, k, v, dy)
    return dk, dq, dv


def attend(rule):
    """Return attention with rule(q, k, v, dy)."""
    return with_vjp(attention, lambda *x: (attention(*x), x), lambda saved, dy: rule(*saved, dy))


QKV = normal((4, 3), (4, 3), (4, 3))
right("attention", attend(attention_gradients), QKV)
wrong("attention: mask", attend(without_mask), QKV, "input 0", "")
wrong("attention: scale", attend(without_scale), QKV, "input 0", "√3")
wrong("attention: exchanged", attend(exchanged), QKV, "input 0", "the gradient of input 1")

# ---------------------------------------------------------------------------------------------------------
# Softmax, a linear layer, layer normalization


def softmax(x):
    e = jnp.exp(x)
    return e / e.sum(-1, keepdims=True)


def with_softmax(rule):
    """Return the softmax with rule(y, dy)."""
    return with_vjp(softmax, lambda x: (softmax(x), softmax(x)), lambda y, dy: (rule(y, dy),))


def in_float32(y, dy):
    y, dy = y.astype(jnp.float32), dy.astype(jnp.float32)
    return (y * (dy - (dy * y).sum(-1, keepdims=True))).astype(jnp.float64)


X = normal((3, 4))
over_rows = with_softmax(lambda y, dy: y * (dy - (dy * y).sum(0, keepdims=True)))
two_gradients = with_vjp(softmax, lambda x: (softmax(x), softmax(x)), lambda y, dy: (dy, dy))
right("softmax", with_softmax(lambda y, dy: y * (dy - (dy * y).sum(-1, keepdims=True))), X)
wrong("softmax: axis", over_rows, X, "input 0", "")
wrong("softmax: diagonal", with_softmax(lambda y, dy: y * (1 - y) * dy), X, "input 0", "")
wrong("softmax: float32", with_softmax(in_float32), X, "input 0", "float32")
wrong("softmax: None", with_softmax(lambda y, dy: None), X, "input 0", "every entry is 0")
wrong("softmax: count", two_gradients, X, "backward", "tuple")
wrong("softmax: shape", with_softmax(lambda y, dy: dy.sum(0)), X, "backward", "shape")


def linear(rule):
    """Return a linear layer with rule(x, w, dy)."""

    def forward(x, w, b):
        return x @ w + b

    return with_vjp(forward, lambda x, w, b: (forward(x, w, b), (x, w)), lambda saved, dy: rule(*saved, dy))


XWB = normal((5, 4), (4, 4), (4,))
bias_mean = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.mean(0)))
right("linear", linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(0))), XWB)
wrong("linear: mean", bias_mean, XWB, "input 2", "averaged")
wrong("linear: transposed", linear(lambda x, w, dy: (dy @ w, x.T @ dy, dy.sum(0))), XWB, "input 0", "")
wrong("linear: twice", linear(lambda x, w, dy: (dy @ w.T, 2 * x.T @ dy, dy.sum(0))), XWB, "input 1", "2")


def norm_forward(x):
    centered = x - x.mean(-1, keepdims=True)
    rstd = 1 / jnp.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
    return centered * rstd, (centered * rstd, rstd)


def norm(rule):
    """Return the layer norm with rule(normalized, rstd, dy)."""
    return with_vjp(lambda x: norm_forward(x)[0], norm_forward, lambda saved, dy: (rule(*saved, dy),))


def norm_rule(n, rstd, dy):
    return rstd * (dy - dy.mean(-1, keepdims=True) - n * (dy * n).mean(-1, keepdims=True))


without_variance = norm(lambda n, rstd, dy: rstd * (dy - dy.mean(-1, keepdims=True)))
right("layer norm", norm(norm_rule), normal((3, 6)))
wrong("layer norm: variance", without_variance, normal((3, 6)), "input 0", "")

# ---------------------------------------------------------------------------------------------------------
# Rules of custom_jvp, several outputs, nested inputs


def log1pexp(derivative):
    """Return log(1 + exp(x)) with the derivative along a direction v, derivative(x, v)."""

    def forward(x):
        return jnp.log1p(jnp.exp(x))

    return with_jvp(forward, lambda xs, vs: (forward(*xs), derivative(*xs, *vs)))


def product(derivative):
    """Return x y with derivative(x, y, along x, along y)."""
    return with_jvp(lambda x, y: x * y, lambda xy, v: (xy[0] * xy[1], derivative(*xy, *v)))


not_linear = log1pexp(lambda x, v: v * v * jax.nn.sigmoid(x))
THREE = normal((3,), (3,))
right("log1pexp", log1pexp(lambda x, v: v * jax.nn.sigmoid(x)), X)
wrong("log1pexp: sign", log1pexp(lambda x, v: v * jax.nn.sigmoid(-x)), X, "input 0", "")
wrong("log1pexp: linear", not_linear, X, "backward", "linear")
right("product", product(lambda x, y, dx, dy: dx * y + x * dy), THREE)
wrong("product: term", product(lambda x, y, dx, dy: dx * y), THREE, "input 1", "every entry is 0")


def moments(factor):
    """Return the means of x and x², whose backward pass has a factor that should be 2."""

    def forward(x):
        return (x.mean(0), (x * x).mean(0)), x

    def backward(x, dy):
        return ((dy[0] + factor * x * dy[1]) / len(x),)

    return with_vjp(lambda x: forward(x)[0], forward, backward)


right("moments", moments(2), X)
wrong("moments: factor", moments(1), X, "input 0", "")


class Residuals:
    """A place outside of JAX for the residuals of the last call."""

    x = None


def keep_outside(x):
    Residuals.x = x
    return x * x, None


def parameters_and_x():
    return {"w": np.full((4, 2), 0.3), "b": np.arange(2.0)}, *X()


outside = with_vjp(lambda x: x * x, keep_outside, lambda _, dy: (2 * Residuals.x * dy,))
right("pytrees", lambda p, x: jnp.tanh(x @ p["w"] + p["b"]), parameters_and_x)
wrong("square: outside", outside, X, "input 0", "runs a second time before backward")
right("relu", jax.nn.relu, X)
