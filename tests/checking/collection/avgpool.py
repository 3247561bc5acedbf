import numpy as np


class StridedAverage:
    """Average of windows of 3 with stride 2, along the last axis."""

    def forward(self, x):
        n = (x.shape[-1] - 3) // 2 + 1
        y = np.stack([x[..., 2 * i : 2 * i + 3].mean(-1) for i in range(n)], axis=-1)
        return y, x.shape

    def backward(self, dy, shape):
        dx = np.zeros(shape)
        for i in range(dy.shape[-1]):
            dx[..., 2 * i : 2 * i + 3] += dy[..., i : i + 1] / 3
        return dx
