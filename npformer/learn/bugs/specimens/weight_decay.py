"""A specimen with a bug: the optimizer AdamW."""

import numpy as np


class AdamW:
    """Adam with decoupled weight decay.

        value -= lr weight_decay value   for the matrices
        value -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    Args: the parameters of a model, each with .value and .grad.
    """

    def __init__(self, parameters, *, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1):
        self.parameters, self.betas, self.eps, self.weight_decay = list(parameters), betas, eps, weight_decay
        self.m = [np.zeros_like(p.value) for p in self.parameters]
        self.v = [np.zeros_like(p.value) for p in self.parameters]
        self.t = 0

    def step(self, lr):
        """Change every parameter in place."""
        beta1, beta2 = self.betas
        self.t += 1
        for p, m, v in zip(self.parameters, self.m, self.v, strict=True):
            p.value *= 1 - lr * self.weight_decay
            m += (1 - beta1) * (p.grad - m)
            v += (1 - beta2) * (p.grad * p.grad - v)
            m_hat, v_hat = m / (1 - beta1**self.t), v / (1 - beta2**self.t)
            p.value -= lr * m_hat / (np.sqrt(v_hat) + self.eps)
