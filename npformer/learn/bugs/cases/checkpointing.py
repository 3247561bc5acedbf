"""Bug: the second forward pass draws another dropout mask than the first."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import adapt, squared_error
from npformer.learn.bugs.trials import alike, equal, float32_stays, gradients, normal
from npformer.nn import FeedForward, Linear
from npformer.nn.module import Module
from npformer.nn.show import named_arrays

STEPS, LR, RATE, DEPTH = 300, 0.01, 0.5, 3


class Deep(Module):
    """Checkpointed layers with residuals, x = x + layer(x), between two linear maps."""

    def __init__(self, own: Names) -> None:
        rng = np.random.default_rng(3)
        self.enter = Linear(8, 16, rng=rng, dtype=np.float64)
        self.layers = [
            own.Checkpointed(FeedForward(16, 32, dropout=RATE, rng=rng, dtype=np.float64))
            for _ in range(DEPTH)
        ]
        self.leave = Linear(16, 4, rng=rng, dtype=np.float64)

    def forward(self, x: Array, **settings: Any) -> tuple[Any, Any]:
        """Return (y, cache)."""
        x, entered = self.enter.forward(x)
        caches = []
        for layer in self.layers:
            h, cache = layer.forward(x, **settings)
            x = x + h
            caches.append(cache)
        y, left = self.leave.forward(x)
        return y, (entered, caches, left)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx."""
        entered, caches, left = cache
        dx = self.leave.backward(dy, left)
        for layer, layer_cache in zip(self.layers[::-1], caches[::-1], strict=True):
            dx = dx + layer.backward(dx, layer_cache)
        return self.enter.backward(dx, entered)


def train(own: Names) -> Run:
    """Train with dropout, and evaluate without."""
    model, rng = Deep(own), np.random.default_rng(4)
    teacher, held_out, used = normal(8, 4, seed=5), rng.standard_normal((200, 8)), []

    def step(number: int) -> float:
        used.append(squared_error(model.forward(held_out)[0], np.tanh(held_out @ teacher))[0])
        x = rng.standard_normal((32, 8))
        y, cache = model.forward(x, train=True, rng=np.random.default_rng(number))
        loss, dy = squared_error(y, np.tanh(x @ teacher))
        model.backward(dy, cache)
        return loss

    adapt(model, step, steps=STEPS, lr=LR)
    return Run(used, {})


def layer_of(own: Names, dropout: float = 0.3, dtype: Any = np.float64) -> Any:
    """Return a small checkpointed layer.

    Args:
        own: The names that the code defines.
        dropout: The dropout probability of the layer.
        dtype: The dtype of the parameters.
    """
    return own.Checkpointed(FeedForward(6, 9, dropout=dropout, dtype=dtype))


def compare_with_layer(own: Names) -> dict[str, Any]:
    """Compare y and dx without dropout with those of the layer itself."""
    layer, x, dy = layer_of(own, dropout=0), normal(4, 6), normal(4, 6, seed=2)
    y, cache = layer.forward(x, train=True, rng=np.random.default_rng(5))
    right, right_cache = layer.layer.forward(x)
    return {"y": (y, right), "dx": (layer.backward(dy, cache), layer.layer.backward(dy, right_cache))}


def undisturbed(own: Names) -> dict[str, Any]:
    """Check that backward draws nothing from the generator."""
    given = []
    for backward in (True, False):
        layer, rng = layer_of(own), np.random.default_rng(5)
        y, cache = layer.forward(normal(4, 6), train=True, rng=rng)
        if backward:
            layer.backward(y, cache)
        given.append(float(rng.random()))
    return {"what the generator gives after backward": tuple(given)}


def different_masks(own: Names) -> dict[str, Any]:
    """Check that two calls draw two different masks."""
    layer, x, rng = layer_of(own, 0.5), normal(4, 6), np.random.default_rng(5)
    one, two = (layer.forward(x, train=True, rng=rng)[0] for _ in "12")
    return {"whether two calls drop differently": (bool((one != two).any()), True)}


def small(own: Names) -> dict[str, Any]:
    """Check that the cache holds no array as wide as the hidden layer."""
    _, cache = layer_of(own).forward(normal(4, 6), train=True, rng=np.random.default_rng(5))
    widths = {array.shape[-1] for _, array in named_arrays((cache,)) if array.ndim}
    return {"whether the cache holds activations of the inner width": (9 in widths, False)}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    layer, x = layer_of(own, dtype=np.float32), normal(4, 6).astype(np.float32)
    y, cache = layer.forward(x, train=True, rng=np.random.default_rng(5))
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


CHECKPOINTING = Specimen(
    number=15,
    name="checkpointing",
    summary="right without dropout, and with it a poor learner",
    symptom="""
    With dropout 0 a network of these layers trains like any other. With dropout 0.5 it is at a loss of
    {bug[last]:.2f} on held-out data after {bug[steps]} steps, where the same layers without checkpointing
    reach {right[last]:.2f}.
    """,
    train=train,
    trials=(
        gradients("gradient check outside training", lambda own: (layer_of(own), normal(4, 6))),
        gradients(
            "gradient check while training",
            lambda own: (layer_of(own), normal(4, 6)),
            train=True,
            rng=7,
        ),
        equal("without dropout, y and dx beside the layer itself", compare_with_layer),
        alike("backward draws nothing from the generator", undisturbed),
        equal("each call drops something else", different_masks),
        equal("the cache stays small", small),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "Dropout makes the difference. gradcheck takes train=True and rng=7: each evaluation then starts "
        "from a fresh generator.",
        "Compare the mask of the first forward pass with that of the second, which backward makes.",
        "A generator is not a number: where it stands changes with each draw, and the cache holds the "
        "very same one. copy.deepcopy makes another that stands where the first does.",
    ),
    story="""
    backward ran the layer again to have its activations, and the generator had moved on: it drew another
    mask. So the gradient belonged to another network than the loss did. Without dropout the two passes
    agree to the bit, and every check at rate 0 passes. With it the loss was {bug[last]:.2f} after
    {bug[steps]} steps, and is {right[last]:.2f} with yours. A large framework's first version had this bug;
    today its checkpointing keeps the generator's state by default.
    """,
    repair="""
+import copy
 from typing import Any, NamedTuple

-        y, _ = self.layer.forward(x, Context(train, rng))
-        return y, CheckpointedCache(x, train, rng)
+        before = copy.deepcopy(rng)  # it moves on with every draw
+        y, _ = self.layer.forward(x, Context(train, rng))
+        return y, CheckpointedCache(x, train, before)

-        _, layer_cache = self.layer.forward(x, Context(train, rng))
+        _, layer_cache = self.layer.forward(x, Context(train, copy.deepcopy(rng)))
""",
)
