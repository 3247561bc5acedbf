"""Bug: a NumPy float64 scalar turns everything after it into float64."""

from typing import Any

import numpy as np

from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, backwards, learn, learn_tokens
from npformer.learn.bugs.trials import all_float32, equal, gradients, normal
from npformer.nn import InputEmbedding, Linear
from npformer.nn.show import named_arrays

LENGTH = 9


def train(own: Names) -> Run:
    """Train on reversing a sentence in float32; then measure the memory of the cache."""
    rng = np.random.default_rng(3)
    model = Chain(
        InputEmbedding(12, 16, LENGTH, rng=rng),
        own.SelfAttention(16, rng=rng),
        own.SelfAttention(16, rng=rng),
        Linear(16, 12, rng=rng),
    )
    losses = learn(model, lambda _: learn_tokens(model, *backwards(rng, 16, LENGTH)), steps=150, lr=0.01)
    logits, cache = model.forward(rng.integers(0, 12, (16, LENGTH)))
    size = sum(array.nbytes for _, array in named_arrays(cache))
    return Run(losses, {"kilobytes": size / 1000, "dtype": str(logits.dtype)})


def forward(own: Names) -> Any:
    """Return a layer in float32, its output and its cache."""
    layer = own.SelfAttention(16)
    return layer, *layer.forward(normal(2, 3, 16).astype(np.float32))


def float32_results(own: Names) -> dict[str, Any]:
    """Return the output and the gradient for float32."""
    layer, y, cache = forward(own)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


def low_cache(own: Names) -> Any:
    """Return the arrays of the cache for float32."""
    return {f"cache.{name}": array for name, array in named_arrays(forward(own)[2])}


def low_backward(own: Names) -> dict[str, Any]:
    """Return the gradient for a dy in float32, whatever the dtype of y."""
    layer, _, cache = forward(own)
    return {"dx": layer.backward(np.ones((2, 3, 16), np.float32), cache)}


def values(own: Names) -> dict[str, Any]:
    """Compare the layer's output with the formula."""
    layer, x = own.SelfAttention(16, dtype=np.float64), normal(2, 3, 16)
    linear = layer.query_key_value
    q, k, v = np.split(x @ linear.weight.value + linear.bias.value, 3, -1)
    e = np.exp(q @ k.swapaxes(-1, -2) / 4)
    return {"y": (layer.forward(x)[0], x + e / e.sum(-1, keepdims=True) @ v)}


BUG = Specimen(
    summary="the loss is correct, but the model needs too much memory",
    symptom="""
    All parameters of a model are float32. Its loss after {bug[steps]} steps is {bug[last]:.3f}, and
    {right[last]:.3f} without the bug, so the results are correct. But the cache of a forward pass needs
    {bug[kilobytes]:.0f} kB instead of {right[kilobytes]:.0f} kB, and the dtype of the logits is {bug[dtype]}
    instead of {right[dtype]}.
    """,
    train=train,
    trials=(
        gradients("gradient check", lambda own: (own.SelfAttention(16, dtype=np.float64), normal(2, 3, 16))),
        equal("the output is that of the formula", values),
        all_float32("for float32 inputs, the output is float32", float32_results),
        all_float32("all arrays of the cache are float32", low_cache),
        all_float32("backward returns float32", low_backward),
    ),
    english_hints=(
        "show(cache) prints the dtype of every array in the cache. Which is the first one that is not "
        "float32?",
        "The product of two float32 arrays is float32. Which other number is used to compute the scores?",
        "Run print(type(np.sqrt(16)), type(math.sqrt(16))). Then multiply a float32 array by each of them, "
        "and print the dtypes.",
    ),
    story="""
    np.sqrt(16) is a NumPy scalar of dtype float64. Since NumPy 2, a float32 array times such a scalar is
    float64. math.sqrt(16) is a Python float, and a float32 array times a Python float remains float32. So all
    arrays after this line were float64. The residual connection passed this dtype on to all later layers. The
    cache needed {bug[kilobytes]:.0f} kB instead of {right[kilobytes]:.0f} kB, and matrix products took twice
    as long. The numbers themselves are even more exact, so no comparison of numbers finds the bug. Gradient
    checks do not find it either, because they run in float64. In NumPy 1 the same line was correct.
    """,
    repair="""
+import math
 from typing import Any, NamedTuple

-        self.scale = 1 / np.sqrt(d_model)
+        self.scale = 1 / math.sqrt(d_model)
""",
)
