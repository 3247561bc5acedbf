"""Bug: a layer divides by the batch size, as the loss has done already."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, regression
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal

STEPS, LR = 150, 0.1


def learn(own: Names, batch: int) -> list[float]:
    """Train a network of two layers with batches of this size, and return the losses."""
    rng = np.random.default_rng(3)
    model = Chain(own.Linear(8, 32, rng=rng), (relu, relu_backward), own.Linear(32, 4, rng=rng))
    return descend(model, regression(model, batch), steps=STEPS, lr=LR)


def train(own: Names) -> Run:
    """Train with batches of 4 and of 64."""
    large = learn(own, 64)
    return Run(large, {"small": float(np.mean(learn(own, 4)[-20:]))})


def halves(own: Names) -> dict[str, Any]:
    """Compare the gradients of a batch with the sum of those of its halves."""
    whole, parts, x, dy = own.Linear(5, 3), own.Linear(5, 3), normal(6, 5), normal(6, 3, seed=2)
    whole.backward(dy, whole.forward(x)[1])
    for part in (slice(0, 2), slice(2, 6)):
        parts.backward(dy[part], parts.forward(x[part])[1])
    return {
        "weight.grad of two halves of a batch": (parts.weight.grad, whole.weight.grad),
        "bias.grad of two halves of a batch": (parts.bias.grad, whole.bias.grad),
    }


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    layer, x = own.Linear(5, 3, dtype=np.float32), normal(6, 5).astype(np.float32)
    y, cache = layer.forward(x)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache), "weight.grad": layer.weight.grad}


LINEAR = Specimen(
    number=1,
    name="linear",
    summary="it learns, and more slowly the larger the batch",
    symptom="""
    A network of two of these layers learns by plain gradient descent, always with the same learning rate.
    After {bug[steps]} steps the loss is {bug[small]:.2f} with batches of 4, and {bug[last]:.2f} with
    batches of 64. It should be {right[small]:.2f} and {right[last]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check on a batch of one row", lambda own: (own.Linear(5, 3), normal(1, 5))),
        gradients("gradient check on seven rows", lambda own: (own.Linear(5, 3), normal(7, 5))),
        gradients("gradient check on two sentences of four", lambda own: (own.Linear(5, 3), normal(2, 4, 5))),
        equal("a batch in two halves gives the same gradients", halves),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "The curve with batches of 64 looks like one with a smaller learning rate. Where may a number "
        "that grows with the batch come in?",
        "Run npformer gradcheck bugs/01_linear.py:Linear --shape 7,8, and the same with --shape 1,8.",
        "dy is the gradient of a loss that is a mean already. What backward divides by comes in twice.",
    ),
    story="""
    backward divided the parameters' gradients by the number of rows. The loss is a mean over the batch, so
    dy holds that division already: it was made twice, and the learning rate was in effect 64 times smaller.
    Nothing breaks: the direction is right, and Adam, which divides by the gradient's own size, hides it
    altogether, until weight decay or clipping compares that size with something. With batches of 64 the
    loss was {bug[last]:.2f} after {bug[steps]} steps, and is {right[last]:.2f} with yours. A check on a
    single row divides by 1, and passes.
    """,
    repair="""
-        # a batch is judged by its mean: each row has its share in the gradient
-        drows = dy.reshape(-1, dy.shape[-1]) / len(rows)  # (N, O)
+        drows = dy.reshape(-1, dy.shape[-1])  # (N, O)
""",
)
