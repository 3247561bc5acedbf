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
