import numpy as np


class SoftmaxSum:
    """The sum of a softmax is 1: dx is zero in exact arithmetic."""

    def forward(self, x):
        e = np.exp(x - x.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
        return p.sum(-1), p

    def backward(self, dy, p):
        dp = np.broadcast_to(dy[..., None], p.shape)
        return p * (dp - (dp * p).sum(-1, keepdims=True))
