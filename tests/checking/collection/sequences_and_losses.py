"""Layers along an axis, tables of embeddings, and losses."""

import numpy as np

from npformer.nn import Parameter


class CumulativeMean:
    def forward(self, x):
        n = np.arange(1, x.shape[1] + 1)[None, :, None]
        return np.cumsum(x, axis=1) / n, n

    def backward(self, dy, n):
        g = dy / n
        return np.flip(np.cumsum(np.flip(g, axis=1), axis=1), axis=1)


class TemporalDifference:
    def forward(self, x):
        return x[:, 1:] - x[:, :-1], None

    def backward(self, dy, cache):
        b, t, d = dy.shape
        dx = np.zeros((b, t + 1, d))
        dx[:, 1:] += dy
        dx[:, :-1] -= dy
        return dx


class StridedAverage:
    """Average of windows of 3 with stride 2, along the last axis."""

    def forward(self, x):
        n = (x.shape[-1] - 3) // 2 + 1
        y = np.stack([x[..., 2 * i : 2 * i + 3].mean(-1) for i in range(n)], axis=-1)
        return y, x.shape

    def backward(self, dy, shape):
        dx = np.zeros(shape)
        for i in range(dy.shape[-1]):
            dx[..., 2 * i : 2 * i + 3] += dy[..., i : i + 1] / 3
        return dx


class TensorTrain:
    """Two cores contracted with x (B, 2, 3)."""

    def __init__(self):
        r = np.random.default_rng(83)
        self.cores = (Parameter(r.normal(size=(2, 4, 3))), Parameter(r.normal(size=(3, 3, 5))))

    def forward(self, x):
        G, H = self.cores
        return np.einsum("bij,iar,rjc->bac", x, G.value, H.value), x

    def backward(self, dy, x):
        G, H = self.cores
        G.grad += np.einsum("bac,bij,rjc->iar", dy, x, H.value)
        H.grad += np.einsum("bac,bij,iar->rjc", dy, x, G.value)
        return np.einsum("bac,iar,rjc->bij", dy, G.value, H.value)


class TransposedOut:
    """Non-contiguous output, Fortran-ordered gradients, views in the cache."""

    def __init__(self):
        self.W = Parameter(np.asfortranarray(np.random.default_rng(92).normal(size=(4, 3))))

    def forward(self, x):
        y = np.swapaxes(x @ self.W.value, 1, 2)
        return y, x[:]

    def backward(self, dy, x):
        d = np.swapaxes(dy, 1, 2)
        self.W.grad += np.tensordot(x, d, ([0, 1], [0, 1]))
        return d @ self.W.value.T


class ShapeSensitive:
    """Right for any batch; the wrong variant is right for batch 1 and for square shapes only."""

    def __init__(self):
        self.w = Parameter(np.random.default_rng(93).normal(size=(3,)))

    def forward(self, x):
        return (x * self.w.value).sum(-1), x

    def backward(self, dy, x):
        self.w.grad += np.einsum("bt,btd->d", dy, x)
        return dy[..., None] * self.w.value


class Dense:
    def __init__(self):
        r = np.random.default_rng(0)
        self.weight = Parameter(r.normal(size=(8, 3)))
        self.bias = Parameter(np.zeros(3))

    def forward(self, x):
        return x @ self.weight.value + self.bias.value, x

    def backward(self, dy, x):
        self.weight.grad += x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
        self.bias.grad += dy.reshape(-1, dy.shape[-1]).sum(axis=0)
        return dy @ self.weight.value.T


class Lookup:
    """Token embedding: integer input, no gradient for it."""

    def __init__(self):
        self.table = Parameter(np.random.default_rng(80).normal(size=(7, 4)))

    def forward(self, ids):
        return self.table.value[ids] * 2.0, ids

    def backward(self, dy, ids):
        np.add.at(self.table.grad, ids, 2.0 * dy)
        return


class Interpolate:
    """Piecewise linear interpolation in a table of learned values at the integers -6..6."""

    def __init__(self):
        self.table = Parameter(np.random.default_rng(31).normal(size=13))

    def forward(self, x):
        pos = np.clip(x + 6, 0, 11.999999)
        i = np.floor(pos).astype(int)
        f = pos - i
        t = self.table.value
        return (1 - f) * t[i] + f * t[i + 1], (x, i, f)

    def backward(self, dy, cache):
        x, i, f = cache
        t = self.table.value
        np.add.at(self.table.grad, i, dy * (1 - f))
        np.add.at(self.table.grad, i + 1, dy * f)
        inside = (x > -6) & (x < 5.999999)
        return dy * (t[i + 1] - t[i]) * inside


class PaddedLookup:
    """Id 0 is padding: its embedding is multiplied by a bool mask."""

    def __init__(self):
        self.table = Parameter(np.random.default_rng(82).normal(size=(5, 3)))

    def forward(self, ids):
        real = ids != 0
        e = self.table.value[ids] * real[..., None]
        return e.sum(1) / real.sum(1, keepdims=True), (ids, real)

    def backward(self, dy, cache):
        ids, real = cache
        d = (dy / real.sum(1, keepdims=True))[:, None] * real[..., None]
        np.add.at(self.table.grad, ids, d)


class BinaryLoss:
    """Logits and integer labels: the labels have no gradient."""

    def forward(self, logits, labels):
        y = np.log1p(np.exp(logits)) - labels * logits
        return y.mean(), (logits, labels)

    def backward(self, dy, cache):
        logits, labels = cache
        p = 1 / (1 + np.exp(-logits))
        return dy * (p - labels) / logits.size, None


class MaskedMSE:
    """Loss over real positions only; prediction and target are both inputs, the bool mask is a keyword."""

    def forward(self, prediction, target, *, mask):
        e = np.where(mask[..., None], prediction - target, 0)
        n = mask.sum() * prediction.shape[-1]
        return (e**2).sum() / n, (e, n)

    def backward(self, dy, cache):
        e, n = cache
        d = 2 * dy * e / n
        return d, -d
