import numpy as np

from npformer.nn import Parameter


class Scale:
    def __init__(self, n, seed):
        self.s = Parameter(np.random.default_rng(seed).normal(size=n))

    def forward(self, x):
        return x * self.s.value, x

    def backward(self, dy, x):
        self.s.accumulate((dy * x).reshape(-1, x.shape[-1]).sum(0))
        return dy * self.s.value


class Tree:
    """Layers in lists of dicts of lists."""

    def __init__(self):
        self.blocks = [
            {"left": [Scale(4, 1), Scale(4, 2)], "right": Scale(4, 3)},
            {"left": [Scale(4, 4)], "right": Scale(4, 5)},
        ]

    def forward(self, x):
        caches = []
        for block in self.blocks:
            left, cl = x, []
            for layer in block["left"]:
                left, c = layer.forward(left)
                cl.append(c)
            right, cr = block["right"].forward(x)
            x = np.sin(left) + right
            caches.append((cl, cr, left))
        return x, caches

    def backward(self, dy, caches):
        for block, (cl, cr, left) in zip(reversed(self.blocks), reversed(caches)):
            dleft = dy * np.cos(left)
            for layer, c in zip(reversed(block["left"]), reversed(cl)):
                dleft = layer.backward(dleft, c)
            dy = dleft + block["right"].backward(dy, cr)
        return dy
