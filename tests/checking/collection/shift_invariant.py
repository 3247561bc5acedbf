import numpy as np

from npformer.nn import Parameter


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
