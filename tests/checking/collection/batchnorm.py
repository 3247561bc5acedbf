import numpy as np

from npformer.nn import Parameter


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
