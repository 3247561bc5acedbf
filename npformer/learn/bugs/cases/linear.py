"""Bug: a layer divides the gradients by the batch size, although the loss is already a mean."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Descent, learn, regression
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal


def losses(own: Names, batch: int) -> list[float]:
    """Train a network of two layers with batches of this size, and return the losses."""
    rng = np.random.default_rng(3)
    model = Chain(own.Linear(8, 32, rng=rng), (relu, relu_backward), own.Linear(32, 4, rng=rng))
    return learn(model, regression(model, batch), steps=150, lr=0.1, optimizer=Descent(model))


def halves(own: Names) -> dict[str, Any]:
    """Compare the gradients of a batch with the sum of those of its halves."""
    whole, parts, x, dy = own.Linear(5, 3), own.Linear(5, 3), normal(6, 5), normal(6, 3, seed=2)
    whole.backward(dy, whole.forward(x)[1])
    for part in (slice(0, 2), slice(2, 6)):
        parts.backward(dy[part], parts.forward(x[part])[1])
    return {
        say("{name}.grad of two halves of a batch", name=name): (
            getattr(parts, name).grad,
            getattr(whole, name).grad,
        )
        for name in ("weight", "bias")
    }


BUG = Specimen(
    summary="the larger the batch, the more slowly the network learns",
    symptom="""
    A network with two of these layers is trained by plain gradient descent, always with the same learning
    rate. After {bug[steps]} steps its loss is {bug[small]:.2f} if the batches have 4 rows, but
    {bug[last]:.2f} if they have 64 rows. Without the bug, these losses are {right[small]:.2f} and
    {right[last]:.2f}.
    """,
    train=lambda own: Run(losses(own, 64), {"small": float(np.mean(losses(own, 4)[-20:]))}),
    trials=(
        gradients("gradient check on a batch of one row", lambda own: (own.Linear(5, 3), normal(1, 5))),
        gradients("gradient check on seven rows", lambda own: (own.Linear(5, 3), normal(7, 5))),
        gradients("gradient check on two sentences of four", lambda own: (own.Linear(5, 3), normal(2, 4, 5))),
        equal("the two parts of a batch give the same gradients as the whole batch", halves),
        float32_stays(
            lambda own: (own.Linear(5, 3, dtype=np.float32), normal(6, 5)), "y", "dx", "weight.grad"
        ),
    ),
    english_hints=(
        "The curve for batches of 64 looks as if the learning rate were smaller. Which number in the code "
        "grows with the batch?",
        "Run npformer gradcheck bugs/01_linear.py:Linear --shape 7,8. Then run it with --shape 1,8, and "
        "compare the two reports.",
        "The loss is the mean over the batch, so dy already contains the division by the batch size. Does "
        "backward divide a second time?",
    ),
    story="""
    backward divided the gradients of the parameters by the number of rows. But the loss is a mean over the
    batch, so dy already contains this division. It was done twice. With batches of 64 rows, this has the same
    effect as a learning rate that is 64 times smaller. The loss was {bug[last]:.2f} after {bug[steps]} steps.
    With your repair it is {right[last]:.2f}. Such a bug is hard to notice, because the direction of the
    gradient is correct. Adam divides by the size of the gradient, so it hides the bug completely. It becomes
    visible again with weight decay or gradient clipping, which depend on the size of the gradient. A gradient
    check with a single row divides by 1, so it passes.
    """,
    repair="""
-        # the gradient of a batch is the mean of the gradients of its rows
-        drows = dy.reshape(-1, dy.shape[-1]) / len(rows)  # (N, O)
+        drows = dy.reshape(-1, dy.shape[-1])  # (N, O)
""",
)
