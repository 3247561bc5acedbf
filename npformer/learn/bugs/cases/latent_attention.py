"""Bug: the weights are divided by their sum, and backward treats the sum as a constant."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import latent_attend, latent_attend_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import learn, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal, random_parameters
from npformer.nn import Linear
from npformer.nn.module import Module

STEPS, LR, SEEDS = 300, 0.02, (3, 4, 5, 6)
VOCAB_SIZE, PLACES = 8, 9


class Model(Module):
    """A model that predicts one token of the sentence from the output of latent attention."""

    def __init__(self, own: Names, orientation: Any, rng: np.random.Generator) -> None:
        self.attention = own.LatentAttention(VOCAB_SIZE + PLACES, PLACES, orientation=orientation, rng=rng)
        self.attention.telling.weight.value[0] += 2  # the token "to" begins with a high importance
        self.output = Linear(VOCAB_SIZE, VOCAB_SIZE, rng=rng, dtype=np.float64)

    def forward(self, ids: Array) -> tuple[Any, Any]:
        """Return (logits, cache)."""
        words, places = np.eye(VOCAB_SIZE)[ids], np.broadcast_to(np.eye(PLACES), (len(ids), PLACES, PLACES))
        read, attended = self.attention.forward(np.concatenate([words, places], -1), words)
        logits, output = self.output.forward(read)
        return logits, (attended, output)

    def backward(self, dlogits: Array, cache: Any) -> None:
        """Add the gradients of the parameters; ids have no gradient."""
        attended, output = cache
        self.attention.backward(self.output.backward(dlogits, output), attended)


def trained(own: Names, orientation: str, seed: int) -> Run:
    """Train on finding the token before "to", whose id is 0."""
    rng = np.random.default_rng(seed)
    model = Model(own, orientation, rng)

    def step(_: int) -> float:
        ids, rows = rng.integers(1, VOCAB_SIZE, (32, PLACES)), np.arange(32)
        to = rng.integers(1, PLACES, 32)
        ids[rows, to] = 0
        return learn_tokens(model, ids, ids[rows, to - 1])

    return Run(learn(model, step, steps=STEPS, lr=LR), {})


def train(own: Names) -> Run:
    """Return the mean of four trainings with rows, and one training with columns."""
    losses = np.mean([trained(own, "rows", seed).losses for seed in SEEDS], 0)
    return Run(losses.tolist(), {"columns": trained(own, "columns", SEEDS[0]).numbers()["last"]})


def layer_of(own: Names, orientation: str, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    """Return a layer with biases that are not 0, states (B, S, E) and values (B, S, D)."""
    layer = random_parameters(own.LatentAttention(6, 5, orientation=orientation, dtype=dtype), dtype)
    return layer, normal(2, 5, 6), normal(2, 5, 3, seed=4)


def compare_with_package(own: Names, orientation: str) -> dict[str, Any]:
    """Compare the output and the gradients with the package's."""
    layer, e, v = layer_of(own, orientation)
    dy = normal(2, 3, seed=5)
    scores, telling = layer.telling.forward(e)
    places, pointing = layer.pointing.forward(e)
    right, attend = latent_attend(scores[..., 0], places, v, orientation=orientation)
    dscores, dplaces, dv = latent_attend_backward(dy, attend)
    de = layer.telling.backward(dscores[..., None], telling) + layer.pointing.backward(dplaces, pointing)
    y, cache = layer.forward(e, v)
    found = layer.backward(dy, cache)
    return {"y": (y, right), "dv": (found[1], dv), "de": (found[0], de)}


def equal_values(own: Names) -> dict[str, Any]:
    """Check that e has no gradient if all values are equal, because then the weights do not matter."""
    layer, e, v = layer_of(own, "rows")
    _, cache = layer.forward(e, np.broadcast_to(v[:, :1], v.shape))
    de, _ = layer.backward(normal(2, 3, seed=5), cache)
    return {say("de if all values are equal"): (de, np.zeros_like(e))}


BUG = Specimen(
    summary="correct in one orientation, slow in the other",
    symptom="""
    A model with latent attention learns to name the token that stands before a certain other token. The layer
    was written and tested for the orientation "columns". With it, the loss is {bug[columns]:.3f} after
    {bug[steps]} steps. Later, someone added the orientation "rows", with which the task is as easy. But with
    it the loss is {bug[last]:.2f}, the mean of four trainings. Without the bug it is {right[last]:.3f}.
    """,
    train=train,
    trials=(
        gradients("columns: gradient check", lambda own: layer_of(own, "columns")),
        gradients("rows: gradient check", lambda own: layer_of(own, "rows")),
        equal(
            "columns: values and gradients are those of the package",
            lambda own: compare_with_package(own, "columns"),
        ),
        equal(
            "rows: values and gradients are those of the package",
            lambda own: compare_with_package(own, "rows"),
        ),
        equal("rows: e has no gradient if all values are equal", equal_values),
        float32_stays(lambda own: layer_of(own, "rows", np.float32), "y", "de", "dv"),
    ),
    english_hints=(
        "Print cache.length for both orientations. What is the difference?",
        "Give all tokens the same value: v = np.ones((1, 5, 3)). Then y does not depend on the weights. What "
        "should the gradient of e be, and what is it?",
        "weights = w / length, and length is the sum of w. So each w_j influences the weights in two ways. "
        "Does backward compute both?",
    ),
    story="""
    length is the sum of all w, so each w_j influences all weights through the denominator. backward left out
    this term. The same happens in a framework if the divisor is detached, or if a norm is computed without
    gradients. In the orientation "columns", length is always 1, and the missing term is the same number for
    all tokens of a sentence. The backward pass of a softmax removes such a constant, so the gradients were
    correct. The loss with columns was {bug[columns]:.3f}, and with your repair it is {right[columns]:.3f}.
    With rows it was {bug[last]:.2f} after {bug[steps]} steps, and with your repair it is {right[last]:.3f}.
    The author of the layer had run a gradient check, but only for columns. A layer with an option needs a
    gradient check for each value of the option.
    """,
    repair="""
-        dw = dweights / length
+        dw = (dweights - (dweights * weights).sum(-1, keepdims=True)) / length
""",
)
