"""Sixty small layers, half of them wrong, that were written without a look at the checker.

Half of them are classes with a cache, as in npformer. The others are closures, pairs of functions, in-place
code, einsum, PyTorch and JAX. A scale is left out where the mistake changes the gradient by less than the
tolerance there.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from npformer.nn import Module, Parameter

SCALES = (1e-8, 1e-4, 1.0, 1e4, 1e8)
SMALL = (1e-8, 1e-4, 1.0)


def draw(*shape: int) -> np.ndarray:
    """Return normal random numbers, the same for every layer with this shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape)


# -- in the style of npformer: classes with a cache --------------------------------------------------


class Swish:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        s = 0.5 * (1 + np.tanh(x / 2))
        return x * s, (x, s)

    def backward(self, dy, cache):
        x, s = cache
        return dy * (s + x * s * (1 - s)) if self.right else dy * s


class RMS(Module):
    def __init__(self, *, right):
        self.gain = Parameter(draw(6))
        self.right = right

    def forward(self, x):
        r = np.sqrt((x * x).mean(-1, keepdims=True))
        return x / r * self.gain.value, (x / r, r)

    def backward(self, dy, cache):
        n, r = cache
        self.gain.grad += (dy * n).sum(0)
        dn = dy * self.gain.value
        if not self.right:
            return dn / r
        return (dn - n * (dn * n).mean(-1, keepdims=True)) / r


class L1:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        total = np.abs(x).sum(-1, keepdims=True)
        return x / total, (x, total)

    def backward(self, dy, cache):
        x, total = cache
        inner = (dy * x).sum(-1, keepdims=True) / total**2
        return dy / total - inner * (np.sign(x) if self.right else 1)


class Affine(Module):
    def __init__(self, *, right):
        self.w = Parameter(draw(6, 6))
        self.c = Parameter(draw(1, 6))
        self.right = right

    def forward(self, x):
        return x @ self.w.value + self.c.value, x

    def backward(self, dy, x):
        self.w.grad += x.T @ dy
        self.c.grad += dy.sum(0, keepdims=True)
        return dy @ (self.w.value.T if self.right else self.w.value)


class MaxPool:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        where = x.argmax(1)
        return x[np.arange(len(x)), where], (where, x.shape)

    def backward(self, dy, cache):
        where, shape = cache
        dx = np.zeros(shape)
        dx[np.arange(shape[0]), where if self.right else 0] = dy
        return dx


class CumSum:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        return np.cumsum(x, 1), None

    def backward(self, dy, cache):
        return np.cumsum(dy[:, ::-1], 1)[:, ::-1] if self.right else np.cumsum(dy, 1)


class Gram:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        return x @ x.T, x

    def backward(self, dy, x):
        return (dy + dy.T) @ x if self.right else 2 * dy @ x


class LogSumExp:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        top = x.max(-1, keepdims=True)
        e = np.exp(x - top)
        return (np.log(e.sum(-1, keepdims=True)) + top)[:, 0], e / e.sum(-1, keepdims=True)

    def backward(self, dy, p):
        return dy[:, None] * p if self.right else dy.mean() * p


class Clip:
    def __init__(self, *, right, scale):
        self.right = right
        self.edge = 0.7 * scale

    def forward(self, x):
        return np.clip(x, -self.edge, self.edge), np.abs(x) < self.edge

    def backward(self, dy, inside):
        return dy * inside if self.right else dy


class Conv(Module):
    def __init__(self, *, right):
        self.kernel = Parameter(draw(3))
        self.right = right

    def forward(self, x):
        k = self.kernel.value
        return sum(k[i] * x[:, i : x.shape[1] - 2 + i] for i in range(3)), x

    def backward(self, dy, x):
        n = dy.shape[1]
        dx = np.zeros_like(x)
        for i in range(3):
            self.kernel.grad[i] += (dy * x[:, i : i + n]).sum()
            dx[:, i : i + n] += dy * self.kernel.value[i if self.right else 2 - i]
        return dx


class Sort:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        order = np.argsort(x, -1)
        return np.take_along_axis(x, order, -1), order

    def backward(self, dy, order):
        return np.take_along_axis(dy, np.argsort(order, -1) if self.right else order, -1)


class Lookup(Module):
    def __init__(self, *, right, scale):
        self.table = Parameter(scale * draw(5, 4))
        self.right = right

    def forward(self, ids):
        return self.table.value[ids], ids

    def backward(self, dy, ids):
        if self.right:
            np.add.at(self.table.grad, ids, dy)
        else:
            self.table.grad[ids] += dy


class Cell(Module):
    def __init__(self, *, right):
        self.w = Parameter(draw(4, 4))
        self.u = Parameter(draw(4, 4))
        self.right = right

    def forward(self, x, h):
        n = np.tanh(x @ self.w.value)
        z = 0.5 + 0.5 * np.tanh(x @ self.u.value)
        return (1 - z) * n + z * h, (x, h, n, z)

    def backward(self, dy, cache):
        x, h, n, z = cache
        dn = dy * (1 - z) * (1 - n * n)
        da = dy * ((h - n) if self.right else h) * 2 * z * (1 - z)
        self.w.grad += x.T @ dn
        self.u.grad += x.T @ da
        return dn @ self.w.value.T + da @ self.u.value.T, dy * z


class Inverse:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        y = np.linalg.inv(x)
        return y, y

    def backward(self, dy, y):
        return -y.T @ dy @ y.T if self.right else -y @ dy @ y


class TopTwo:
    def __init__(self, *, right):
        self.right = right

    def forward(self, x):
        kept = x >= np.sort(x, -1)[:, -2:-1]
        return x * kept, kept

    def backward(self, dy, kept):
        # The wrong one forgets the last row: one entry of many.
        dx = dy * kept
        if not self.right:
            dx[-1] = 0
        return dx


# -- in another style --------------------------------------------------


def cube(*, right):
    """A closure: the wrong one keeps the input of its latest forward pass outside the cache."""
    last = {}

    def forward(x):
        last["x"] = x
        return x**3, x

    def backward(dy, cache):
        return 3 * (cache if right else last["x"]) ** 2 * dy

    return forward, backward


def bilinear(*, right):
    def forward(a, m, b):
        return np.einsum("bi,ij,bj->b", a, m, b), (a, m, b)

    def backward(dy, cache):
        a, m, b = cache
        da = np.einsum("b,ij,bj->bi", dy, m, b)
        dm = np.einsum("b,bi,bj->ij", dy, a, b) if right else np.einsum("b,bi,bj->ji", dy, a, b)
        return da, dm, np.einsum("b,ij,bi->bj", dy, m, a)

    return forward, backward


def cosine(*, right):
    def norm(v):
        return ((v * v).sum(-1, keepdims=True)) ** 0.5

    def forward(a, b):
        u, v = a / norm(a), b / norm(b)
        c = (u * v).sum(-1, keepdims=True)
        return c[..., 0], (u, v, c, norm(a), norm(b))

    def backward(dy, saved):
        u, v, c, na, nb = saved
        g = dy[..., None]
        return g * (v - c * u) / na, g * (u - c * v) / (nb if right else na)

    return forward, backward


def running_product(*, right):
    """In place, in a loop over the columns."""

    def forward(x):
        y = x.copy()
        for t in range(1, y.shape[1]):
            y[:, t] *= y[:, t - 1]
        return y, (x, y)

    def backward(dy, cache):
        x, y = cache
        dx = np.zeros_like(x)
        carry = np.zeros_like(x[:, 0])
        for t in reversed(range(x.shape[1])):
            carry = carry + dy[:, t]
            dx[:, t] = carry * (y[:, t - 1] if t else 1)
            if right:
                carry = carry * x[:, t]
        return dx

    return forward, backward


def in_place_square(*, right):
    def forward(x):
        out = np.empty_like(x)
        np.multiply(x, x, out=out)
        return out, x

    def backward(dy, x):
        if right:
            dy = dy.copy()
        dy *= 2
        dy *= x
        return dy

    return forward, backward


def namespace(*, right):
    w = Parameter(draw(6))

    def backward(dy, x):
        if right:
            w.grad += (dy * x).sum(0)
        else:
            w.grad = (dy * x).sum(0)
        return dy * w.value

    return SimpleNamespace(w=w, forward=lambda x: (x * w.value, x), backward=backward)


def spectrum(*, right):
    filter_ = np.array([1, 0.5 - 0.3j, 0.2j, 0.1])

    def forward(x):
        return np.fft.irfft(np.fft.rfft(x, axis=-1) * filter_, n=6, axis=-1), None

    def backward(dy, _):
        return np.fft.irfft(np.fft.rfft(dy, axis=-1) * (filter_.conj() if right else filter_), n=6, axis=-1)

    return forward, backward


def torch_signed_square(*, right):
    import torch

    class SignedSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x.abs()

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return 2 * dy * (x.abs() if right else x)

    return SignedSquare


def torch_centre(*, right):
    import torch

    class Centre(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.linspace(0.5, 1.5, 6, dtype=torch.float64))

        def forward(self, x):
            return Mean.apply(x) * self.gain

    class Mean(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x - x.mean(-1, keepdim=True)

        @staticmethod
        def backward(ctx, dy):
            return dy - dy.mean(-1, keepdim=True) if right else dy

    return Centre()


def torch_unit(*, right):
    import torch

    class Unit(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            n = x.norm(dim=-1, keepdim=True)
            ctx.save_for_backward(x / n, n)
            return x / n

        @staticmethod
        def backward(ctx, dy):
            u, n = ctx.saved_tensors
            along = (dy * u).sum(-1, keepdim=True)
            return (dy - u * along) / (n if right else n * n)

    return lambda x: Unit.apply(x)


def torch_hypot(*, right):
    import torch

    class Hypot(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            y = (a * a + b * b).sqrt()
            ctx.save_for_backward(a, b, y)
            return y

        @staticmethod
        def backward(ctx, dy):
            a, b, y = ctx.saved_tensors
            return (dy * a / y, dy * b / y) if right else (dy * b / y, dy * a / y)

    return Hypot


def torch_gelu(*, right):
    import torch

    class Gelu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.nn.functional.gelu(x)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            cdf = 0.5 * (1 + torch.erf(x / 2**0.5))
            pdf = torch.exp(-x * x / 2) / (2 * torch.pi) ** (0.5 if right else 1)
            return dy * (cdf + x * pdf)

    return Gelu


def jax_logsumexp(*, right):
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def f(x):
        return jax.scipy.special.logsumexp(x, axis=-1)

    def fwd(x):
        return f(x), jax.nn.softmax(x, axis=-1)

    def bwd(p, dy):
        return ((dy[:, None] if right else jnp.ones_like(dy)[:, None]) * p,)

    f.defvjp(fwd, bwd)
    return f


def jax_share(*, right):
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def share(x):
        return x / jnp.sum(x**2, -1, keepdims=True)

    @share.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        total = jnp.sum(x**2, -1, keepdims=True)
        bent = 2 * x * jnp.sum(x * t, -1, keepdims=True) / total**2
        return x / total, t / total - (bent if right else 0)

    return share


def jax_relu(*, right):
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def relu(x):
        return jnp.maximum(x, 0)

    @relu.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return relu(x), jnp.where(x > 0, t, 0.0 if right else 0.01 * t)

    return relu


def normalized(*, right):
    """Divide by the norm of the whole array, with lambdas alone: the error is 1e-7 of one term."""
    factor = 1 if right else 1 + 1e-7
    return (
        lambda x: (x / (x * x).sum() ** 0.5, x),
        lambda dy, x: dy / (x * x).sum() ** 0.5 - factor * x * (dy * x).sum() / (x * x).sum() ** 1.5,
    )


def simple(make, *shape, scales=SCALES):
    """Return a layer of one input with normal entries."""
    return make, lambda s: (s * draw(*shape),), scales


# The name, the function that makes the layer, its inputs at a scale, and the scales.
LAYERS: list[tuple[str, Any, Callable, tuple[float, ...]]] = [
    ("swish", *simple(Swish, 3, 6, scales=SMALL)),
    ("rms", *simple(RMS, 3, 6)),
    ("l1", *simple(L1, 3, 6)),
    ("affine", *simple(Affine, 3, 6)),
    ("max-pool", *simple(MaxPool, 4, 6)),
    ("cumsum", *simple(CumSum, 3, 5)),
    ("gram", *simple(Gram, 3, 4)),
    ("logsumexp", *simple(LogSumExp, 3, 6)),
    ("clip", *simple(Clip, 3, 6)),
    ("conv", *simple(Conv, 2, 7)),
    ("sort", *simple(Sort, 3, 6)),
    ("lookup", Lookup, lambda s: (np.array([[1, 3, 1], [0, 3, 4]]),), SCALES),
    ("cell", Cell, lambda s: (s * draw(3, 4), draw(2, 3, 4)[0] * s), SMALL),
    ("inverse", Inverse, lambda s: (s * draw(4, 4),), SCALES),
    ("top two", *simple(TopTwo, 3, 6)),
    ("cube", *simple(cube, 3, 4)),
    ("bilinear", bilinear, lambda s: (s * draw(3, 4), draw(4, 4), s * draw(4, 3).T), SCALES),
    ("cosine", cosine, lambda s: (s * draw(3, 4), 2 * s * draw(3, 5)[:, :4]), SCALES),
    ("running product", *simple(running_product, 3, 4)),
    ("in-place square", *simple(in_place_square, 3, 4)),
    ("namespace", *simple(namespace, 3, 6)),
    ("spectrum", *simple(spectrum, 3, 6)),
    ("normalized", *simple(normalized, 3, 4)),
    ("torch signed square", *simple(torch_signed_square, 3, 4)),
    ("torch centre", *simple(torch_centre, 3, 6)),
    ("torch unit", torch_unit, lambda s: (s * draw(3, 4),), (1e-8, 1e-4, 3.0, 1e4, 1e8)),
    ("torch hypot", torch_hypot, lambda s: (s * draw(3, 4), s * draw(3, 5)[:, :4]), SCALES),
    ("torch gelu", *simple(torch_gelu, 3, 4, scales=(1e-4, 1.0))),
    ("jax logsumexp", *simple(jax_logsumexp, 3, 4)),
    ("jax share", *simple(jax_share, 3, 4)),
    ("jax relu", *simple(jax_relu, 3, 4)),
]
