"""Bug: the loss is a mean over the tokens, and its gradient a mean over tokens and padding."""

from typing import Any

import numpy as np

from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, walks
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal
from npformer.nn import Embedding, Linear

STEPS, LR = 40, 2.0
FULL, PADDED = np.array([[3, 1, 4], [1, 5, 2]]), np.array([[3, 1, 4, 0, 0], [2, 0, 0, 0, 0]])


def learn(own: Names, padding: int) -> list[float]:
    """Train on predicting the next token of sentences of seven tokens followed by padding."""
    rng = np.random.default_rng(3)
    model = Chain(Embedding(12, 8, rng=rng, dtype=np.float64), Linear(8, 12, rng=rng, dtype=np.float64))

    def step(_: int) -> float:
        ids = np.pad(walks(rng, 16, 8), ((0, 0), (0, padding)))
        logits, cache = model.forward(ids[:, :-1])
        loss, loss_cache = own.cross_entropy(logits, ids[:, 1:])
        model.backward(own.cross_entropy_backward(1.0, loss_cache), cache)
        return float(loss)

    return descend(model, step, steps=STEPS, lr=LR)


def train(own: Names) -> Run:
    """Train on the same sentences without padding and with 40 positions of padding each."""
    return Run(learn(own, 40), {"bare": float(np.mean(learn(own, 0)[-10:]))})


def pair(own: Names) -> tuple[Any, Any]:
    """Return the file's two functions."""
    return own.cross_entropy, own.cross_entropy_backward


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare loss and gradient of a padded batch, with a dloss that is not 1, with the package's."""
    logits = normal(2, 5, 6)
    loss, cache = own.cross_entropy(logits, PADDED)
    right, right_cache = cross_entropy(logits, PADDED, pad_id=0)
    return {
        "loss": (float(loss), float(right)),
        "dlogits": (own.cross_entropy_backward(0.4, cache), cross_entropy_backward(0.4, right_cache)),
    }


def more_padding(own: Names) -> dict[str, Any]:
    """Compare the gradient at the tokens with and without two more columns of padding."""
    logits = normal(2, 7, 6)
    targets = np.pad(PADDED, ((0, 0), (0, 2)))
    long = own.cross_entropy_backward(1.0, own.cross_entropy(logits, targets)[1])
    short = own.cross_entropy_backward(1.0, own.cross_entropy(logits[:, :5], PADDED)[1])
    return {"dlogits of the same words with more padding": (long[:, :5], short)}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    _, cache = own.cross_entropy(normal(2, 5, 6).astype(np.float32), PADDED)
    return {"dlogits": own.cross_entropy_backward(1.0, cache)}


CROSS_ENTROPY = Specimen(
    number=4,
    name="cross-entropy",
    summary="it learns more slowly, the more padding there is",
    symptom="""
    A next-word model learns by plain gradient descent. From sentences of one length the loss after
    {bug[steps]} steps is {bug[bare]:.2f}. The same sentences with padding behind them, which the loss does
    not count, give {bug[last]:.2f}. It should be {right[bare]:.2f} and {right[last]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check without padding", lambda own: (pair(own), normal(2, 3, 6), FULL)),
        gradients("gradient check with padding", lambda own: (pair(own), normal(2, 5, 6), PADDED)),
        equal("more padding leaves the gradient as it is", more_padding),
        equal("loss and gradient beside the package's", compare_with_package),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "The loss says the right thing of each model. Is what is followed downhill the gradient of that "
        "loss?",
        "gradcheck((cross_entropy, cross_entropy_backward), logits, targets) takes targets of your own: "
        "try some without padding, and some with.",
        "What is the sum divided by in the forward pass, and what in the backward pass?",
    ),
    story="""
    The loss divided by the number of words, its gradient by the number of places: words and padding. The
    more padding, the smaller the steps, in effect another learning rate for every batch. With 40 places of
    padding the loss was {bug[last]:.2f} after {bug[steps]} steps, and is {right[last]:.2f} with yours. On a
    batch without padding the two numbers are the same, so a check on random targets passes. In a framework
    the same happens where the loss is reduced by hand and the mask is forgotten on one side.
    """,
    repair="""
-    drows = drows * (real[:, None] * (dloss / len(real)))
+    drows = drows * (real[:, None] * (dloss / real.sum()))
""",
)
