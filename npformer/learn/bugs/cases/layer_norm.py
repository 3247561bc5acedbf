"""Bug: the gain multiplies the gradient after the two terms of the norm are subtracted, not before."""

from typing import Any

import numpy as np

from npformer.functional import layer_norm, layer_norm_backward, relu, relu_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, squared_error
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal, random_parameters
from npformer.nn import Linear

STEPS, LR, WIDTH = 400, 0.05, 8
# of the targets' components: the gains must move far from 1
SCALES = np.geomspace(3, 1 / 3, WIDTH)


def train(own: Names) -> Run:
    """Train y = norm(relu(x weight1 + bias1) weight2 + bias2) on 64 rows by gradient descent."""
    rng = np.random.default_rng(3)
    norm = own.LayerNorm(WIDTH)
    first, second = (Linear(*sizes, rng=rng, dtype=np.float64) for sizes in ((WIDTH, 16), (16, WIDTH)))
    model = Chain(first, (relu, relu_backward), second, norm)
    x = normal(64, WIDTH, seed=4)
    target = SCALES * np.tanh(x @ normal(WIDTH, WIDTH, seed=5))

    def step(_: int) -> float:
        y, cache = model.forward(x)
        loss, dy = squared_error(y, target)
        model.backward(dy, cache)
        return loss

    losses = descend(model, step, steps=STEPS, lr=LR)
    return Run(losses, {"lowest": float(norm.gain.value.min()), "highest": float(norm.gain.value.max())})


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
    summary="the first steps are correct, but the final loss is too high",
    symptom="""
    The last layer of a network is this layer normalization. At the beginning of training, the loss is
    {bug[first]:.2f} and decreases as it should. Later it decreases too slowly. After {bug[steps]} steps it is
    {bug[last]:.2f}. Without the bug it is {right[last]:.2f}.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check with the initial values, gain 1 and bias 0",
            lambda own: (own.LayerNorm(6), normal(4, 6)),
            randomize=False,
        ),
        gradients("gradient check with random gains", lambda own: (norm_of(own, 6), normal(4, 6))),
        gradients(
            "gradient check with an input of three axes", lambda own: (norm_of(own, 5), normal(2, 3, 5))
        ),
        equal("values and gradients are those of the package", compare_with_package),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "The first steps are correct and later steps are not. So the error depends on something that "
        "training changes.",
        "npformer gradcheck bugs/02_layer_norm.py:LayerNorm --shape 4,8 uses random gains and biases. Call "
        "gradcheck(LayerNorm(8), x, randomize=False) in Python, which uses gain 1 and bias 0. Compare the "
        "two.",
        "The last step of the forward pass is y = gain xhat + bias. What is the gradient of xhat, and where "
        "does backward compute it?",
    ),
    story="""
    backward subtracted the mean and the component along xhat from dy, and multiplied by the gain afterwards.
    In the forward pass the multiplication by the gain is the last step, so in the backward pass it must be
    the first: dxhat = dy gain. If all gains are 1, both orders give the same result. They are 1 at the
    beginning, so a gradient check of the initial layer passes. Then training changes the gains, here to
    values between {bug[lowest]:.2f} and {bug[highest]:.2f}. From then on, all layers before this one get
    slightly incorrect gradients. The loss was {bug[last]:.2f} after {bug[steps]} steps. With your repair it
    is {right[last]:.2f}. This is the reason why gradcheck gives gains and biases random values first.
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
