"""Bug: a layer stores an activation as an attribute, and its next call overwrites it."""

from typing import Any

import numpy as np

from npformer.functional import relu, relu_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, learn, regression
from npformer.learn.bugs.trials import as_right_layer, equal, float32_stays, gradients, normal
from npformer.nn import LayerNorm, Linear

TIMES = 6


def trained(own: Names, times: int) -> Run:
    """Train one layer that runs several times, between two linear maps."""
    rng = np.random.default_rng(3)
    model = Chain(
        Linear(8, 16, rng=rng, dtype=np.float64),
        own.Universal(times, 16, 32, rng=rng),
        LayerNorm(16, dtype=np.float64),
        Linear(16, 4, rng=rng, dtype=np.float64),
    )
    return Run(learn(model, regression(model, 32), steps=300, lr=0.01), {})


def beside_chain(own: Names) -> Any:
    """Return the file's layer, the package's layers, and an input."""
    layer = own.FeedForward(6, 9)
    return layer, Chain(layer.inner, (relu, relu_backward), layer.outer), normal(4, 6)


def two_calls(own: Names) -> dict[str, Any]:
    """Compare the backward pass of a first call with and without a second call before it."""
    layer, x, dy = own.FeedForward(6, 9), normal(4, 6), normal(4, 6, seed=2)
    _, cache = layer.forward(x)
    alone = layer.backward(dy, cache)
    _, cache = layer.forward(x)
    layer.forward(-x)
    return {say("dx of the first of two calls"): (layer.backward(dy, cache), alone)}


BUG = Specimen(
    summary="correct if the layer runs once, worse if it runs six times",
    symptom="""
    A network that applies this layer once learns normally: its loss is {bug[once]:.2f} after {bug[steps]}
    steps, as without the bug. Another network applies the layer six times in a row, always with the same
    parameters. It should reach a lower loss. Without the bug it reaches {right[last]:.2f}, but with the bug
    it reaches only {bug[last]:.2f}.
    """,
    train=lambda own: Run(trained(own, TIMES).losses, {"once": trained(own, 1).numbers()["last"]}),
    trials=(
        as_right_layer("one forward and one backward pass of the layer", beside_chain, "y", "dx", seed=2),
        equal("a second forward pass does not change the backward pass of the first", two_calls),
        gradients("gradient check of the layer", lambda own: (own.FeedForward(6, 9), normal(4, 6))),
        gradients(
            "gradient check of a model that runs the layer three times",
            lambda own: (own.Universal(3, 6, 9), normal(4, 6)),
        ),
        float32_stays(lambda own: (own.Universal(2, 6, 9, dtype=np.float32), normal(4, 6)), "y", "dx"),
    ),
    english_hints=(
        "With n_times=1 everything is correct. How can a second forward pass influence the backward pass of "
        "the first?",
        "Call forward with x, then with -x, then backward with the cache of the first call. Compare dx with "
        "the dx that you get without the second call.",
        "The cache should contain everything that backward needs. Which array does backward read that is not "
        "in the cache?",
    ),
    story="""
    The layer stored the positions where the ReLU was active in an attribute, as many tutorials do. Each
    forward pass overwrote this attribute, so all six backward passes used the values of the last forward
    pass. The gradients had the correct shapes and roughly the correct direction. So the loss decreased, but
    only to {bug[last]:.3f}. With your repair it reaches {right[last]:.3f}. The same error occurs if two
    decoders use one encoder, if layers share weights, or if two threads use the same layer. A test that calls
    forward once and then backward once cannot find it. gradcheck calls forward with another input in between.
    """,
    repair="""
     inner: Any
+    active: Any  # (..., F)

-        self.active = np.empty(0, bool)

-        self.active = h.real > 0  # where the ReLU is the identity
-        y, outer = self.outer.forward(np.where(self.active, h, 0))  # (..., D)
-        return y, FeedForwardCache(inner, outer)
+        active = h.real > 0  # where the ReLU is the identity
+        y, outer = self.outer.forward(np.where(active, h, 0))  # (..., D)
+        return y, FeedForwardCache(inner, active, outer)

-        dh = np.where(self.active, dh, 0)
+        dh = np.where(cache.active, dh, 0)
""",
)
