"""Bug: the kept entries are not scaled up, so the numbers are larger at inference than in training."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, squared_error
from npformer.learn.bugs.trials import alike, equal, float32_stays, gradients, normal
from npformer.nn import Linear

STEPS, LR, RATE = 300, 0.1, 0.4


def train(own: Names) -> Run:
    """Train with dropout, and evaluate without."""
    rng = np.random.default_rng(3)
    dropout = own.Dropout(RATE)
    first = Chain(Linear(8, 64, rng=rng, dtype=np.float64), (relu, relu_backward))
    second = Linear(64, 4, rng=rng, dtype=np.float64)
    model = Chain(first, second)
    teacher, held_out, used = normal(8, 4, seed=5), rng.standard_normal((200, 8)), []

    def step(number: int) -> float:
        h, before = first.forward(held_out)
        y, _ = second.forward(dropout.forward(h)[0])
        used.append(squared_error(y, np.tanh(held_out @ teacher))[0])
        x = rng.standard_normal((32, 8))
        h, before = first.forward(x)
        h, dropped = dropout.forward(h, train=True, rng=np.random.default_rng(number))
        y, after = second.forward(h)
        loss, dy = squared_error(y, np.tanh(x @ teacher))
        first.backward(dropout.backward(second.backward(dy, after), dropped), before)
        return loss

    losses = descend(model, step, steps=STEPS, lr=LR)
    return Run(used, {"training": float(np.mean(losses[-15:]))})


def mean_of_many(own: Names) -> Any:
    """Compare the mean of y over 4000 masks, rounded to remove the noise, with x."""
    x, rng = np.ones(6), np.random.default_rng(1)
    result = {}
    for p in (0.2, 0.5, 0.75):
        layer = own.Dropout(p)
        total = sum(layer.forward(x, train=True, rng=rng)[0] for _ in range(4000)) / 4000
        result[f"the mean of y over many masks at rate {p:g}"] = (np.round(total.mean(), 1), np.float64(1))
    return result


def shares(own: Names) -> dict[str, Any]:
    """Check the share of zeros, the value of the other entries and the gradient for one mask."""
    layer, x = own.Dropout(0.2), np.ones((50, 40))
    y, cache = layer.forward(x, train=True, rng=np.random.default_rng(1))
    dx = layer.backward(x, cache)
    return {
        "the share of zeros at rate 0.2": (float(np.round((y == 0).mean(), 1)), 0.2),
        "dx where dy is as x": (dx, y),
    }


def different_masks(own: Names) -> dict[str, Any]:
    """Check that two calls draw two different masks."""
    layer, x, rng = own.Dropout(0.5), np.ones(50), np.random.default_rng(1)
    one, two = (layer.forward(x, train=True, rng=rng)[0] for _ in "12")
    return {"whether two masks differ": (bool((one != two).any()), True)}


def unused(own: Names) -> dict[str, Any]:
    """Check the cases in which nothing is dropped."""
    x = normal(4, 5)
    return {
        "y outside training": (own.Dropout(0.5).forward(x)[0], x),
        "y at rate 0": (own.Dropout(0).forward(x, train=True, rng=np.random.default_rng(0))[0], x),
    }


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    layer, x = own.Dropout(0.3), normal(6, 5).astype(np.float32)
    y, cache = layer.forward(x, train=True, rng=np.random.default_rng(1))
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


DROPOUT = Specimen(
    number=5,
    name="dropout",
    summary="it does worse on held-out data, and it is not overfitting",
    symptom="""
    A network with this dropout is trained on data that are drawn anew at every step, so it cannot learn
    them by heart. Its training loss ends at {bug[training]:.2f}. Used without dropout on held-out data it
    should do better; it has {bug[last]:.2f}, where {right[last]:.2f} is possible. The curve is that of the
    held-out data.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check while training", lambda own: (own.Dropout(0.3), normal(4, 5)), train=True, rng=7
        ),
        equal("outside training, and at rate 0, y is x", unused),
        alike("the share that is dropped, and its gradient", shares),
        equal("a mask is drawn anew each time", different_masks),
        equal("the mean of y over many masks is x", mean_of_many),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "The gradients are right: gradcheck says so, with train=True and rng=7. So what is wrong is the "
        "function itself.",
        "Feed it ones while training, and outside. What is the mean of y in each case?",
        "The layer above learns from numbers of one size and is used with numbers of another.",
    ),
    story="""
    A share of 0.4 of the entries became 0, and the others stayed as they were: while training, the layer
    above received 0.6 of what it receives afterwards. It learnt to live with that, and then, in use, every
    sum that it makes was 1 / 0.6 times too large. Every gradient was right, the training loss fell as it
    should, and the held-out loss was {bug[last]:.2f} where yours has {right[last]:.2f}: it looks like
    overfitting, for which more dropout is the usual cure. Dividing what is kept by 1 - p keeps the mean. A
    gradient check holds backward to forward; that forward is the function that one meant, it cannot know.
    """,
    repair="""
-        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
+        dropout_mask = dropout_mask.astype(x.real.dtype) * (1 / (1 - self.p))  # the precision of x
""",
)
