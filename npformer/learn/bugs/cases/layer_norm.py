"""Bug: the gain multiplies the gradient after the two terms of the norm are subtracted, not before."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Descent, learn, learn_numbers
from npformer.learn.bugs.trials import (
    as_right_layer,
    float32_stays,
    gradients,
    normal,
    random_parameters,
    with_parameters_of,
)
from npformer.nn import LayerNorm, Linear

WIDTH = 8
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
    losses = learn(
        model, lambda _: learn_numbers(model, x, target), steps=400, lr=0.05, optimizer=Descent(model)
    )
    return Run(losses, {"lowest": float(norm.gain.value.min()), "highest": float(norm.gain.value.max())})


def norm_of(own: Names, width: int = 6, dtype: Any = np.float64) -> Any:
    """Return the file's layer with gains that are not 1 and biases that are not 0."""
    return random_parameters(own.LayerNorm(width, dtype=dtype), dtype)


def beside_package(own: Names) -> Any:
    """Return the file's layer, the package's, and an input."""
    norm = norm_of(own)
    return norm, with_parameters_of(norm, LayerNorm(6, dtype=np.float64)), normal(2, 3, 6)


BUG = Specimen(
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
        gradients("gradient check with random gains", lambda own: (norm_of(own), normal(4, 6))),
        gradients(
            "gradient check with an input of three axes", lambda own: (norm_of(own, 5), normal(2, 3, 5))
        ),
        as_right_layer(
            "values and gradients are those of the package",
            beside_package,
            "y",
            "dx",
            "gain.grad",
            "bias.grad",
        ),
        float32_stays(lambda own: (norm_of(own, dtype=np.float32), normal(4, 6)), "y", "dx"),
    ),
    english_hints=(
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
