import numpy as np

from npformer.nn import Parameter


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
