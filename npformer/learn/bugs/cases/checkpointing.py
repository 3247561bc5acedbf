"""Bug: the second forward pass draws another dropout mask than the first."""

from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Residual, learn, learn_numbers, squared_error
from npformer.learn.bugs.trials import alike, as_right_layer, equal, float32_stays, gradients, normal
from npformer.nn import FeedForward, Linear
from npformer.nn.show import named_arrays

RATE, DEPTH = 0.5, 3


def train(own: Names) -> Run:
    """Train checkpointed layers with residuals with dropout, and evaluate without."""
    rng, draws = np.random.default_rng(3), np.random.default_rng(4)
    enter = Linear(8, 16, rng=rng, dtype=np.float64)
    layers = [FeedForward(16, 32, dropout=RATE, rng=rng, dtype=np.float64) for _ in range(DEPTH)]
    leave = Linear(16, 4, rng=rng, dtype=np.float64)
    model = Chain(enter, *(Residual(own.Checkpointed(layer)) for layer in layers), leave)
    teacher, held_out, used = normal(8, 4, seed=5), draws.standard_normal((200, 8)), []

    def step(number: int) -> float:
        used.append(squared_error(model.forward(held_out)[0], np.tanh(held_out @ teacher))[0])
        x, rng = draws.standard_normal((32, 8)), np.random.default_rng(number)
        return learn_numbers(model, x, np.tanh(x @ teacher), train=True, rng=rng)

    learn(model, step, steps=300, lr=0.01)
    return Run(used, {})


def layer_of(own: Names, dropout: float = 0.3, dtype: Any = np.float64) -> Any:
    """Return a small checkpointed layer."""
    return own.Checkpointed(FeedForward(6, 9, dropout=dropout, dtype=dtype))


def beside_layer(own: Names) -> Any:
    """Return a checkpointed layer without dropout, the layer itself, and an input."""
    layer = layer_of(own, dropout=0)
    return layer, Chain(layer.layer), normal(4, 6)


def undisturbed(own: Names) -> dict[str, Any]:
    """Check that backward draws nothing from the generator."""
    given = []
    for backward in (True, False):
        layer, rng = layer_of(own), np.random.default_rng(5)
        y, cache = layer.forward(normal(4, 6), train=True, rng=rng)
        if backward:
            layer.backward(y, cache)
        given.append(float(rng.random()))
    return {say("the next number of the generator after backward"): tuple(given)}


def different_masks(own: Names) -> dict[str, Any]:
    """Check that two calls draw two different masks."""
    layer, x, rng = layer_of(own, 0.5), normal(4, 6), np.random.default_rng(5)
    one, two = (layer.forward(x, train=True, rng=rng)[0] for _ in "12")
    return {say("whether two forward passes have different dropout masks"): (bool((one != two).any()), True)}


def small(own: Names) -> dict[str, Any]:
    """Check that the cache holds no array as wide as the hidden layer."""
    _, cache = layer_of(own).forward(normal(4, 6), train=True, rng=np.random.default_rng(5))
    widths = {array.shape[-1] for _, array in named_arrays((cache,)) if array.ndim}
    return {say("whether the cache contains activations of the inner layer"): (9 in widths, False)}


BUG = Specimen(
    summary="correct without dropout, but with dropout the loss is high",
    symptom="""
    Activation checkpointing saves memory: a layer does not store its activations, and computes them again in
    the backward pass. With dropout 0, a network of such layers learns normally. With dropout 0.5, its loss on
    held-out data is {bug[last]:.2f} after {bug[steps]} steps. The same network without checkpointing reaches
    {right[last]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check without dropout", lambda own: (layer_of(own), normal(4, 6))),
        gradients(
            "gradient check with dropout",
            lambda own: (layer_of(own), normal(4, 6)),
            train=True,
            rng=7,
        ),
        as_right_layer(
            "without dropout, y and dx are those of the layer without checkpointing",
            beside_layer,
            "y",
            "dx",
            seed=2,
            train=True,
            rng=5,
        ),
        alike("backward does not change the generator", undisturbed),
        equal("each forward pass draws a new dropout mask", different_masks),
        equal("the cache contains no activations", small),
        float32_stays(
            lambda own: (layer_of(own, dtype=np.float32), normal(4, 6)), "y", "dx", train=True, rng=5
        ),
    ),
    english_hints=(
        "The bug is visible only with dropout. Run gradcheck with train=True and rng=7. Then each evaluation "
        "begins with a new generator.",
        "Compare the dropout mask of the first forward pass with the mask of the second forward pass, which "
        "runs inside backward.",
        "Each random number changes the state of a generator. The cache contains the same generator object, "
        "whose state has changed since. copy.deepcopy makes a copy with the current state.",
    ),
    story="""
    backward ran the forward pass again to compute the activations. But the first forward pass had changed the
    state of the generator, so the second one drew another dropout mask. The gradient therefore did not belong
    to the computed loss. Without dropout the two forward passes are identical, so all tests without dropout
    pass. With dropout the loss was {bug[last]:.2f} after {bug[steps]} steps. With your repair it is
    {right[last]:.2f}. The first version of checkpointing in a large framework had this bug. Today it saves
    and restores the state of the generator by default.
    """,
    repair="""
+import copy
 from typing import Any, NamedTuple

-        y, _ = self.layer.forward(x, Context(train, rng))
-        return y, CheckpointedCache(x, train, rng)
+        before = copy.deepcopy(rng)  # each random number changes the state of rng
+        y, _ = self.layer.forward(x, Context(train, rng))
+        return y, CheckpointedCache(x, train, before)

-        _, layer_cache = self.layer.forward(x, Context(train, rng))
+        _, layer_cache = self.layer.forward(x, Context(train, copy.deepcopy(rng)))
""",
)
