import numpy as np


class BinaryLoss:
    """Logits and integer labels: the labels have no gradient."""

    def forward(self, logits, labels):
        y = np.log1p(np.exp(logits)) - labels * logits
        return y.mean(), (logits, labels)

    def backward(self, dy, cache):
        logits, labels = cache
        p = 1 / (1 + np.exp(-logits))
        return dy * (p - labels) / logits.size, None
