"""Bug: the loss is a mean over the tokens, and its gradient a mean over tokens and padding."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Descent, cut, learn, walks
from npformer.learn.bugs.trials import all_float32, equal, gradients, normal
from npformer.nn import Embedding, Linear

FULL, PADDED = np.array([[3, 1, 4], [1, 5, 2]]), np.array([[3, 1, 4, 0, 0], [2, 0, 0, 0, 0]])


def losses(own: Names, padding: int) -> list[float]:
    """Train on predicting the next token of sentences of seven tokens followed by padding."""
    rng = np.random.default_rng(3)
    model = Chain(Embedding(12, 8, rng=rng, dtype=np.float64), Linear(8, 12, rng=rng, dtype=np.float64))

    def step(_: int) -> float:
        ids, targets = cut(np.pad(walks(rng, 16, 8), ((0, 0), (0, padding))))
        logits, cache = model.forward(ids)
        loss, loss_cache = own.cross_entropy(logits, targets)
        model.backward(own.cross_entropy_backward(1.0, loss_cache), cache)
        return float(loss)

    return learn(model, step, steps=40, lr=2.0, optimizer=Descent(model))


def pair(own: Names) -> tuple[Any, Any]:
    """Return the file's two functions."""
    return own.cross_entropy, own.cross_entropy_backward


def gradient(own: Names, logits: Array, targets: Array) -> Any:
    """Return dlogits for a dloss of 1."""
    return own.cross_entropy_backward(1.0, own.cross_entropy(logits, targets)[1])


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
    long = gradient(own, logits, np.pad(PADDED, ((0, 0), (0, 2))))
    short = gradient(own, logits[:, :5], PADDED)
    return {say("dlogits of the same tokens with more padding"): (long[:, :5], short)}


BUG = Specimen(
    summary="the more padding there is, the more slowly the model learns",
    symptom="""
    A language model is trained by plain gradient descent. If all sentences have the same length, the loss
    after {bug[steps]} steps is {bug[bare]:.2f}. In a second training, padding is appended to the same
    sentences. The loss ignores padding, so the result should be the same. But the loss is {bug[last]:.2f}.
    Without the bug, the losses are {right[bare]:.2f} and {right[last]:.2f}.
    """,
    # the same sentences without padding and with 40 positions of padding each
    train=lambda own: Run(losses(own, 40), {"bare": float(np.mean(losses(own, 0)[-10:]))}),
    trials=(
        gradients("gradient check without padding", lambda own: (pair(own), normal(2, 3, 6), FULL)),
        gradients("gradient check with padding", lambda own: (pair(own), normal(2, 5, 6), PADDED)),
        equal("more padding does not change the gradient", more_padding),
        equal("loss and gradient are those of the package", compare_with_package),
        all_float32(
            "float32 stays float32",
            lambda own: {"dlogits": gradient(own, normal(2, 5, 6).astype(np.float32), PADDED)},
        ),
    ),
    english_hints=(
        "The loss itself is correct. Does cross_entropy_backward return the gradient of this loss?",
        "Run gradcheck((cross_entropy, cross_entropy_backward), logits, targets) with targets of your own. "
        "Use targets without padding first, and then targets with padding (id 0).",
        "By which number does the forward pass divide the sum of the losses? By which number does the "
        "backward pass divide?",
    ),
    story="""
    The loss was divided by the number of tokens, but its gradient was divided by the number of all positions,
    padding included. So the gradients were too small if there was padding, as if each batch had its own
    learning rate. With 40 positions of padding in each sentence, the loss was {bug[last]:.2f} after
    {bug[steps]} steps. With your repair it is {right[last]:.2f}. In a batch without padding the two numbers
    are equal, so a gradient check with random targets passes. The same bug occurs with a framework if someone
    computes the mean of the loss by hand and applies the mask in only one of two places.
    """,
    repair="""
-    drows = drows * (real[:, None] * (dloss / len(real)))
+    drows = drows * (real[:, None] * (dloss / real.sum()))
""",
)
