import numpy as np

from npformer.nn import Parameter


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
