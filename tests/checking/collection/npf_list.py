import numpy as np

from npformer.nn import Linear


class Stack:
    def __init__(self):
        rng = np.random.default_rng(8)
        self.layers = [Linear(4, 4, rng=rng, dtype=np.float64) for _ in range(3)]

    def forward(self, x):
        caches = []
        for layer in self.layers:
            z, c = layer.forward(x)
            x = np.tanh(z)
            caches.append((c, x))
        return x, caches

    def backward(self, dy, caches):
        for layer, (c, y) in zip(self.layers[::-1], caches[::-1]):
            dy = layer.backward(dy * (1 - y * y), c)
        return dy
