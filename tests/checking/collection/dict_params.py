import numpy as np

from npformer.nn import Parameter


class GatedDict:
    """y = sigmoid(x W + b) * x, parameters in a dict."""

    def __init__(self):
        rng = np.random.default_rng(11)
        self.p = {"W": Parameter(rng.standard_normal((4, 4)) * 0.4), "b": Parameter(rng.standard_normal(4))}

    def forward(self, x):
        g = 1 / (1 + np.exp(-(x @ self.p["W"].value + self.p["b"].value)))
        return g * x, {"x": x, "g": g}

    def backward(self, dy, cache):
        x, g = cache["x"], cache["g"]
        dz = dy * x * g * (1 - g)
        self.p["W"].grad += np.einsum("bti,btj->ij", x, dz)
        self.p["b"].grad += np.einsum("btj->j", dz)
        return dy * g + dz @ self.p["W"].value.T
