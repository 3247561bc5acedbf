"""Bug: a NumPy float64 scalar turns everything after it into float64."""

from typing import Any

import numpy as np

from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, adapt, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal
from npformer.nn import InputEmbedding, Linear
from npformer.nn.show import named_arrays

STEPS, LR, LENGTH = 150, 0.01, 9


def train(own: Names) -> Run:
    """Train on reversing a sentence in float32; then measure the memory of the cache."""
    rng = np.random.default_rng(3)
    model = Chain(
        InputEmbedding(12, 16, LENGTH, rng=rng),
        own.SelfAttention(16, rng=rng),
        own.SelfAttention(16, rng=rng),
        Linear(16, 12, rng=rng),
    )

    def step(_: int) -> float:
        ids = rng.integers(0, 12, (16, LENGTH))
        return learn_tokens(model, ids, ids[:, ::-1])

    losses = adapt(model, step, steps=STEPS, lr=LR)
    logits, cache = model.forward(rng.integers(0, 12, (16, LENGTH)))
    size = sum(array.nbytes for _, array in named_arrays(cache))
    return Run(losses, {"kilobytes": size / 1000, "dtype": str(logits.dtype)})


def float32_results(own: Names) -> dict[str, Any]:
    """Return the output and the gradient for float32."""
    layer, x = own.SelfAttention(16), normal(2, 3, 16).astype(np.float32)
    y, cache = layer.forward(x)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


def low_cache(own: Names) -> Any:
    """Return the arrays of the cache for float32."""
    layer, x = own.SelfAttention(16), normal(2, 3, 16).astype(np.float32)
    return {f"cache.{name}": array for name, array in named_arrays(layer.forward(x)[1])}


def low_backward(own: Names) -> dict[str, Any]:
    """Return the gradient for a dy in float32, whatever the dtype of y."""
    layer, x = own.SelfAttention(16), normal(2, 3, 16).astype(np.float32)
    _, cache = layer.forward(x)
    return {"dx": layer.backward(np.ones_like(x), cache)}


def values(own: Names) -> dict[str, Any]:
    """Compare the layer's output with the formula."""
    layer, x = own.SelfAttention(16, dtype=np.float64), normal(2, 3, 16)
    linear = layer.query_key_value
    q, k, v = np.split(x @ linear.weight.value + linear.bias.value, 3, -1)
    e = np.exp(q @ k.swapaxes(-1, -2) / 4)
    return {"y": (layer.forward(x)[0], x + e / e.sum(-1, keepdims=True) @ v)}


PRECISION = Specimen(
    number=17,
    name="precision",
    summary="the loss is right, and it takes more memory than it should",
    symptom="""
    Nothing is wrong with the loss: {bug[last]:.3f} after {bug[steps]} steps, and {right[last]:.3f} without
    the bug. But the model was made for float32, and what a forward pass keeps for backward takes
    {bug[kilobytes]:.0f} kB; it should be {right[kilobytes]:.0f} kB. The logits are {bug[dtype]}.
    """,
    train=train,
    trials=(
        gradients("gradient check", lambda own: (own.SelfAttention(16, dtype=np.float64), normal(2, 3, 16))),
        equal("the numbers beside the formula", values),
        float32_stays("float32 in, float32 out", float32_results),
        float32_stays("what the cache holds is float32", low_cache),
        float32_stays("backward gives float32", low_backward),
    ),
    hints=(
        "show(cache) prints the dtype of everything that is kept. Which is the first that is not float32?",
        "Two arrays of float32 make another of float32. What else takes part in the scores?",
        "print(type(np.sqrt(16)), type(math.sqrt(16))), and multiply a float32 array with each.",
    ),
    story="""
    np.sqrt(16) is a number of NumPy's own, of dtype float64, and since NumPy 2 such a number counts in the
    choice of dtype as an array would: float32 times it is float64. A number of Python's own, as
    math.sqrt(16) gives, takes on the array's. From this layer on everything was float64, and the residual
    carried it through all the others: {bug[kilobytes]:.0f} kB instead of {right[kilobytes]:.0f}, and
    products of matrices at half the speed. The results are even a little better, so no test of numbers can
    see it, and a gradient check runs in float64 anyway. Under NumPy 1 the same line was right.
    """,
    repair="""
+import math
 from typing import Any, NamedTuple

-        self.scale = 1 / np.sqrt(d_model)
+        self.scale = 1 / math.sqrt(d_model)
""",
)
