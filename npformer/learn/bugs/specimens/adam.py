"""A specimen with a bug: Adam."""

import numpy as np


class Adam:
    """Adam for a list of parameters, with running means for each of them.

    m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,
    value -= lr · (m / (1 - β1^t)) / (sqrt(v / (1 - β2^t)) + eps).  Source: Kingma and Ba 2015.
    """

    def __init__(self, parameters, *, betas=(0.9, 0.999), eps=1e-8):
        self.parameters, self.betas, self.eps = list(parameters), betas, eps
        self.m = [np.zeros_like(p.value) for p in self.parameters]
        self.v = [np.zeros_like(p.value) for p in self.parameters]
        self.t = 0

    def step(self, lr):
        """Update the value of every parameter with its gradient."""
        beta1, beta2 = self.betas
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            self.t += 1
            m += (1 - beta1) * (p.grad - m)
            v += (1 - beta2) * (p.grad * p.grad - v)
            m_hat = m / (1 - beta1**self.t)  # both start at 0 and are too small at first
            v_hat = v / (1 - beta2**self.t)
            p.value -= lr * m_hat / (np.sqrt(v_hat) + self.eps)
