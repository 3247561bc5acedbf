import numpy as np

from npformer.nn import Parameter


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
