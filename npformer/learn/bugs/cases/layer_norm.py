"""Bug: the gain multiplies the gradient after the two terms of the norm are subtracted, not before."""

from typing import Any

import numpy as np

from npformer.functional import layer_norm, layer_norm_backward, relu, relu_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, regression
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal, random_parameters
from npformer.nn import Linear

STEPS, LR, DEPTH = 400, 0.05, 5


def train(own: Names) -> Run:
    """Train five layers y = norm(relu(x weight + bias)) by gradient descent."""
    rng = np.random.default_rng(3)
    layers = []
    for _ in range(DEPTH):
        layers += [Linear(8, 8, rng=rng, dtype=np.float64), (relu, relu_backward), own.LayerNorm(8)]
    model = Chain(*layers, Linear(8, 4, rng=rng, dtype=np.float64))
    losses = descend(model, regression(model, 32), steps=STEPS, lr=LR)
    gains = np.concatenate([layer.gain.value for layer in model.layers if hasattr(layer, "gain")])
    return Run(losses, {"lowest": float(gains.min()), "highest": float(gains.max())})


def norm_of(own: Names, width: int, dtype: Any = np.float64) -> Any:
    """Return the file's layer with gains that are not 1 and biases that are not 0.

    Args:
        own: The names that the code defines.
        width: The width of the layer.
        dtype: The dtype of the parameters.
    """
    layer = random_parameters(own.LayerNorm(width, dtype=dtype))
    for parameter in (layer.gain, layer.bias):
        parameter.value = parameter.value.astype(dtype)
    return layer


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare the output and the gradients with the package's."""
    layer, x, dy = norm_of(own, 6), normal(2, 3, 6), normal(2, 3, 6, seed=5)
    y, cache = layer.forward(x)
    right, right_cache = layer_norm(x, layer.gain.value, layer.bias.value, layer.eps)
    dx, dgain, dbias = layer_norm_backward(dy, right_cache)
    found = layer.backward(dy, cache)
    return {
        "y": (y, right),
        "dx": (found, dx),
        "gain.grad": (layer.gain.grad, dgain),
        "bias.grad": (layer.bias.grad, dbias),
    }


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    layer, x = norm_of(own, 6, np.float32), normal(4, 6).astype(np.float32)
    y, cache = layer.forward(x)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


LAYER_NORM = Specimen(
    number=2,
    name="layer-norm",
    summary="it starts as it should, and ends higher",
    symptom="""
    A network with five of these layers begins to learn as the right one does, at a loss of
    {bug[first]:.2f}, and then falls behind: {bug[last]:.2f} after {bug[steps]} steps, where
    {right[last]:.2f} is possible.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check as the layer starts, gain 1 and bias 0",
            lambda own: (own.LayerNorm(6), normal(4, 6)),
            randomize=False,
        ),
        gradients("gradient check with random gains", lambda own: (norm_of(own, 6), normal(4, 6))),
        gradients("the same on two sentences of three", lambda own: (norm_of(own, 5), normal(2, 3, 5))),
        equal("values and gradients beside the package's", compare_with_package),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "The first steps are right and later ones are not: so it depends on something that training changes.",
        "npformer gradcheck bugs/02_layer_norm.py:LayerNorm --shape 4,8 starts from random gains and "
        "biases. Now call gradcheck(LayerNorm(8), x, randomize=False) yourself, and compare.",
        "Read backward from below, beside y = gain xhat + bias: what is the gradient of xhat?",
    ),
    story="""
    backward took the mean and the part along xhat off dy, and multiplied by the gain afterwards. The gain
    comes last in the forward pass, so it must come first in the backward pass: dxhat = dy gain. As long as
    all gains are 1, and so they start, the two are the same, and a check at initialisation agrees to
    rounding. Then the gains move (in this training from 1 to between {bug[lowest]:.2f} and
    {bug[highest]:.2f}) and every layer below gets a gradient that is a little wrong: {bug[last]:.2f} after
    {bug[steps]} steps, and {right[last]:.2f} with yours. So gradcheck sets gains and biases to random
    values first.
    """,
    repair="""
-        along = (dy * xhat).mean(-1, keepdims=True)  # (..., 1)
-        dx = rstd * (dy - dy.mean(-1, keepdims=True) - xhat * along)
-        return self.gain.value * dx  # (..., D)
+        dxhat = dy * self.gain.value  # (..., D)
+        along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)
+        return rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)
""",
)
