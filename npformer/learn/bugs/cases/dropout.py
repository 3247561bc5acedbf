"""Bug: the kept entries are not divided by 1 - p, so the numbers are larger at inference than in training."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Descent, learn, squared_error
from npformer.learn.bugs.trials import alike, equal, float32_stays, gradients, normal
from npformer.nn import Linear

RATE = 0.4


def train(own: Names) -> Run:
    """Train with dropout, and evaluate without."""
    rng = np.random.default_rng(3)
    dropout = own.Dropout(RATE)
    first = Chain(Linear(8, 64, rng=rng, dtype=np.float64), (relu, relu_backward))
    second = Linear(64, 4, rng=rng, dtype=np.float64)
    model = Chain(first, second)
    teacher, held_out, used = normal(8, 4, seed=5), rng.standard_normal((200, 8)), []

    def step(number: int) -> float:
        y, _ = second.forward(dropout.forward(first.forward(held_out)[0])[0])
        used.append(squared_error(y, np.tanh(held_out @ teacher))[0])
        x = rng.standard_normal((32, 8))
        h, before = first.forward(x)
        h, dropped = dropout.forward(h, train=True, rng=np.random.default_rng(number))
        y, after = second.forward(h)
        loss, dy = squared_error(y, np.tanh(x @ teacher))
        first.backward(dropout.backward(second.backward(dy, after), dropped), before)
        return loss

    losses = learn(model, step, steps=300, lr=0.1, optimizer=Descent(model))
    return Run(used, {"training": float(np.mean(losses[-15:]))})


def mean_of_many(own: Names) -> Any:
    """Compare the mean of y over 4000 masks, rounded to remove the noise, with x."""
    x, rng = np.ones(6), np.random.default_rng(1)
    result = {}
    for p in (0.2, 0.5, 0.75):
        layer = own.Dropout(p)
        total = sum(layer.forward(x, train=True, rng=rng)[0] for _ in range(4000)) / 4000
        result[say("the mean of y over many masks with p = {p:g}", p=p)] = (
            np.round(total.mean(), 1),
            np.float64(1),
        )
    return result


def shares(own: Names) -> dict[str, Any]:
    """Check the share of zeros, the value of the other entries and the gradient for one mask."""
    layer, x = own.Dropout(0.2), np.ones((50, 40))
    y, cache = layer.forward(x, train=True, rng=np.random.default_rng(1))
    return {
        say("the share of zeros with p = 0.2"): (float(np.round((y == 0).mean(), 1)), 0.2),
        say("dx if dy equals x"): (layer.backward(x, cache), y),
    }


def different_masks(own: Names) -> dict[str, Any]:
    """Check that two calls draw two different masks."""
    layer, x, rng = own.Dropout(0.5), np.ones(50), np.random.default_rng(1)
    one, two = (layer.forward(x, train=True, rng=rng)[0] for _ in "12")
    return {say("whether two masks differ"): (bool((one != two).any()), True)}


def unused(own: Names) -> dict[str, Any]:
    """Check the cases in which nothing is dropped."""
    x = normal(4, 5)
    return {
        say("y outside training"): (own.Dropout(0.5).forward(x)[0], x),
        say("y with p = 0"): (own.Dropout(0).forward(x, train=True, rng=np.random.default_rng(0))[0], x),
    }


BUG = Specimen(
    summary="the held-out loss is too high, but not by overfitting",
    symptom="""
    A network with this dropout layer is trained. Each step uses new random data, so the network cannot
    memorize them. At the end the training loss is {bug[training]:.2f}. The network is also evaluated without
    dropout on held-out data, where its loss should be lower. But it is {bug[last]:.2f}. Without the bug it is
    {right[last]:.2f}. The curves show the loss on the held-out data.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check with train=True", lambda own: (own.Dropout(0.3), normal(4, 5)), train=True, rng=7
        ),
        equal("outside training, and with p = 0, y is x", unused),
        alike("the share of dropped entries, and the gradient", shares),
        equal("each call draws a new mask", different_masks),
        equal("the mean of y over many masks is x", mean_of_many),
        float32_stays(lambda own: (own.Dropout(0.3), normal(6, 5)), "y", "dx", train=True, rng=1),
    ),
    english_hints=(
        "gradcheck with train=True and rng=7 shows that the gradients are correct. So the error is in the "
        "forward pass.",
        "Pass an array of ones to the layer, with train=True and without. What is the mean of y in each "
        "case?",
        "In training, the next layer receives smaller numbers than in evaluation. How does dropout avoid "
        "this?",
    ),
    story="""
    In training, 40 % of the entries became 0 and the others did not change. So the sums that the next layer
    computes were on average 0.6 times as large as without dropout. The next layer learned its weights for
    these smaller sums. In evaluation there is no dropout, so all its sums were 1 / 0.6 times too large. If
    the remaining entries are divided by 1 - p, the mean stays the same. The held-out loss was
    {bug[last]:.2f}, and with your repair it is {right[last]:.2f}. This looks like overfitting, and the usual
    remedy against overfitting is more dropout, which makes it worse. All gradients were correct and the
    training loss decreased normally. A gradient check only compares backward with forward. It cannot know
    whether forward is the intended function.
    """,
    repair="""
-        dropout_mask = dropout_mask.astype(x.real.dtype)  # the precision of x
+        dropout_mask = dropout_mask.astype(x.real.dtype) * (1 / (1 - self.p))  # the precision of x
""",
)
