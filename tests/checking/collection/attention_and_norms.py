"""Attention, norms, and layers some of whose gradients are zero."""

import numpy as np

from npformer.nn import Parameter


class CausalAttention:
    """One head of causal self-attention."""

    def __init__(self):
        r = np.random.default_rng(60)
        self.qkv = Parameter(r.normal(size=(4, 12)) / 2)

    def forward(self, x):
        q, k, v = np.split(x @ self.qkv.value, 3, axis=-1)
        s = np.einsum("btd,bsd->bts", q, k) / np.sqrt(4)
        future = np.triu(np.ones(s.shape[1:], dtype=bool), 1)
        s = np.where(future, -1e9, s)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        a = e / e.sum(axis=-1, keepdims=True)
        return a @ v, (x, q, k, v, a)

    def backward(self, dy, cache):
        x, q, k, v, a = cache
        dv = np.einsum("bts,btd->bsd", a, dy)
        da = np.einsum("btd,bsd->bts", dy, v)
        ds = a * (da - (da * a).sum(-1, keepdims=True)) / np.sqrt(4)
        dq = np.einsum("bts,bsd->btd", ds, k)
        dk = np.einsum("bts,btd->bsd", ds, q)
        d = np.concatenate([dq, dk, dv], axis=-1)
        self.qkv.grad += np.einsum("bti,btj->ij", x, d)
        return d @ self.qkv.value.T


class RelativeBiasAttention:
    """Attention of fixed content with a learned bias per distance, clipped to -2..2."""

    def __init__(self):
        self.bias = Parameter(np.random.default_rng(102).normal(size=5))

    def forward(self, x):
        t = x.shape[1]
        index = np.clip(np.arange(t)[None] - np.arange(t)[:, None], -2, 2) + 2
        s = self.bias.value[index]
        e = np.exp(s - s.max(-1, keepdims=True))
        a = e / e.sum(-1, keepdims=True)
        return a @ x, (x, a, index)

    def backward(self, dy, cache):
        x, a, index = cache
        da = np.einsum("btd,bsd->ts", dy, x)
        ds = a * (da - (da * a).sum(-1, keepdims=True))
        self.bias.grad += np.bincount(index.ravel(), weights=ds.ravel(), minlength=5)
        return a.T @ dy


class KeyBiasAttention:
    """Self-attention with a key bias, whose gradient cancels exactly."""

    def __init__(self):
        r = np.random.default_rng(9)
        self.Wq, self.Wk, self.Wv = (Parameter(r.normal(size=(4, 4)) * 0.6) for _ in range(3))
        self.bk = Parameter(r.normal(size=4))

    def forward(self, x):
        q, k, v = x @ self.Wq.value, x @ self.Wk.value + self.bk.value, x @ self.Wv.value
        s = q @ k.transpose(0, 2, 1) / 2.0
        e = np.exp(s - s.max(-1, keepdims=True))
        a = e / e.sum(-1, keepdims=True)
        return a @ v, (x, q, k, v, a)

    def backward(self, dy, cache):
        x, q, k, v, a = cache
        dv = a.transpose(0, 2, 1) @ dy
        da = dy @ v.transpose(0, 2, 1)
        ds = a * (da - (da * a).sum(-1, keepdims=True)) / 2.0
        dq = ds @ k
        dk = ds.transpose(0, 2, 1) @ q
        for w, d in ((self.Wq, dq), (self.Wk, dk), (self.Wv, dv)):
            w.grad += np.einsum("bti,btj->ij", x, d)
        self.bk.grad += dk.sum(axis=(0, 1))
        return dq @ self.Wq.value.T + dk @ self.Wk.value.T + dv @ self.Wv.value.T


class SoftmaxSum:
    """The sum of a softmax is 1: dx is zero in exact arithmetic."""

    def forward(self, x):
        e = np.exp(x - x.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
        return p.sum(-1), p

    def backward(self, dy, p):
        dp = np.broadcast_to(dy[..., None], p.shape)
        return p * (dp - (dp * p).sum(-1, keepdims=True))


class LogMeanExp:
    def __init__(self):
        self.beta = Parameter(np.array(1.3))

    def forward(self, x):
        b = self.beta.value
        e = np.exp(b * x)
        m = e.mean(axis=1)
        return np.log(m) / b, (x, e, m)

    def backward(self, dy, cache):
        x, e, m = cache
        b = self.beta.value
        p = e / e.sum(axis=1, keepdims=True)
        self.beta.grad += (dy * ((p * x).sum(1) / b - np.log(m) / b**2)).sum()
        return p * dy[:, None]


class RMSNorm:
    def __init__(self, n=5, eps=0.1):
        self.eps, self.scale = eps, Parameter(np.linspace(-1, 2, n))

    def forward(self, x):
        r = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps)
        return self.scale.value * x / r, (x, r)

    def backward(self, dy, cache):
        x, r = cache
        self.scale.grad += np.sum(dy * x / r, axis=(0, 1))
        d = dy * self.scale.value
        return d / r - x * np.mean(d * x, axis=-1, keepdims=True) / r**3


class LayerNormMine:
    def __init__(self, n=5, eps=1e-5):
        self.gain = Parameter(np.ones(n))
        self.bias = Parameter(np.zeros(n))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(-1, keepdims=True)
        inv = 1 / np.sqrt(((x - mu) ** 2).mean(-1, keepdims=True) + self.eps)
        xhat = (x - mu) * inv
        return xhat * self.gain.value + self.bias.value, (xhat, inv)

    def backward(self, dy, cache):
        xhat, inv = cache
        self.gain.grad += (dy * xhat).sum(axis=(0, 1))
        self.bias.grad += dy.sum(axis=(0, 1))
        d = dy * self.gain.value
        return inv * (d - d.mean(-1, keepdims=True) - xhat * (d * xhat).mean(-1, keepdims=True))


class BatchNormMine:
    def __init__(self, n=4):
        self.gamma, self.beta = Parameter(np.linspace(0.5, 2, n)), Parameter(np.zeros(n))
        self.running = np.zeros(n)

    def forward(self, x, train=True):
        mu, var = x.mean(0), x.var(0)
        xc = x - mu
        inv = 1 / np.sqrt(var + 1e-5)
        return self.gamma.value * xc * inv + self.beta.value, (xc, inv)

    def backward(self, dy, cache):
        xc, inv = cache
        n = len(dy)
        self.beta.grad += dy.sum(0)
        self.gamma.grad += (dy * xc * inv).sum(0)
        dh = dy * self.gamma.value
        return inv / n * (n * dh - dh.sum(0) - xc * inv**2 * (dh * xc).sum(0))


class BiasThenNorm:
    """A scalar bias before the centring has gradient 0; its scale after the standardisation nearly."""

    def __init__(self):
        self.b = Parameter(np.array([0.3]))
        self.s = Parameter(np.array([2.0]))

    def forward(self, x):
        z = x * self.s.value + self.b.value
        c = z - z.mean(-1, keepdims=True)
        n = np.sqrt((c * c).sum(-1, keepdims=True))
        return c / n, (x, c, n)

    def backward(self, dy, cache):
        x, c, n = cache
        u = c / n
        dc = (dy - u * (dy * u).sum(-1, keepdims=True)) / n
        dz = dc - dc.mean(-1, keepdims=True)
        self.b.grad += dz.sum()
        self.s.grad += (dz * x).sum()
        return dz * self.s.value


class UnitVectors:
    def forward(self, x):
        n = np.sqrt((x**2).sum(-1, keepdims=True))
        return x / n, (x, n)

    def backward(self, dy, cache):
        x, n = cache
        return dy / n - x * (x * dy).sum(-1, keepdims=True) / n**3


class CosineToProto:
    """Cosine similarity of x to prototypes."""

    def __init__(self):
        self.P = Parameter(np.random.default_rng(21).normal(size=(3, 4)))

    def forward(self, x):
        nx = np.linalg.norm(x, axis=-1, keepdims=True)
        npr = np.linalg.norm(self.P.value, axis=-1, keepdims=True)
        xh, ph = x / nx, self.P.value / npr
        return xh @ ph.T, (xh, ph, nx, npr)

    def backward(self, dy, cache):
        xh, ph, nx, npr = cache
        dxh = dy @ ph
        dph = np.einsum("bk,bd->kd", dy, xh)
        self.P.grad += (dph - ph * (dph * ph).sum(-1, keepdims=True)) / npr
        return (dxh - xh * (dxh * xh).sum(-1, keepdims=True)) / nx


class CentreSum:
    def __init__(self):
        self.w = Parameter(np.random.default_rng(12).normal(size=5))

    def forward(self, x):
        z = x * self.w.value
        c = z - z.mean(axis=-1, keepdims=True)
        return c.sum(axis=-1, keepdims=True), x

    def backward(self, dy, x):
        dc = dy * np.ones_like(x)
        dz = dc - dc.mean(axis=-1, keepdims=True)
        self.w.grad += (dz * x).sum(axis=(0, 1))
        return dz * self.w.value


class SpectralFilter:
    """A learned real filter in Fourier space: the FFT takes complex numbers, the real part does not."""

    def __init__(self):
        self.h = Parameter(np.random.default_rng(103).normal(size=4))

    def forward(self, x):
        f = np.fft.rfft(x, axis=-1)
        return np.fft.irfft(f * self.h.value, n=x.shape[-1], axis=-1), f

    def backward(self, dy, f):
        n = dy.shape[-1]
        g = np.fft.rfft(dy, axis=-1)
        w = np.array([1.0, 2.0, 2.0, 1.0]) / n
        self.h.grad += (w * (np.conj(f) * g).real).reshape(-1, 4).sum(0)
        return np.fft.irfft(g * self.h.value, n=n, axis=-1)


class DifferenceOfSoftmax:
    """log p_i - log p_j: the normaliser cancels; and a gain that multiplies an exact zero."""

    def __init__(self):
        self.gain = Parameter(np.array(1.4))

    def forward(self, x):
        logp = x - np.log(np.exp(x).sum(-1, keepdims=True))
        return logp[..., 1:] - logp[..., :-1] + self.gain.value * (
            np.exp(logp).sum(-1, keepdims=True) - 1
        ), np.exp(logp)

    def backward(self, dy, p):
        d = np.zeros_like(p)
        d[..., 1:] += dy
        d[..., :-1] -= dy
        d = d + self.gain.value * dy.sum(-1, keepdims=True) * p
        self.gain.grad += (dy.sum(-1) * (p.sum(-1) - 1)).sum()
        return d - p * d.sum(-1, keepdims=True)
