"""Bug: the heads are made by a reshape without a transposition, which mixes positions."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.checking.leaks import movement
from npformer.functional import split_heads
from npformer.functional.masks import causal_mask
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import adapt, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, no_leak, normal
from npformer.nn import InputEmbedding, Linear
from npformer.nn.module import Module

STEPS, LR, LENGTH = 200, 0.01, 9


class Model(Module):
    """A model with embeddings, positions, the file's attention with a residual connection, and logits."""

    def __init__(self, own: Names, rng: np.random.Generator, n_heads: int) -> None:
        self.input = InputEmbedding(12, 16, LENGTH, rng=rng, dtype=np.float64)
        self.attention = own.SelfAttention(16, n_heads, rng=rng)
        self.output = Linear(16, 12, rng=rng, dtype=np.float64)

    def forward(self, ids: Array) -> tuple[Any, Any]:
        """Return (logits, cache)."""
        x, entered = self.input.forward(ids)
        h, attended = self.attention.forward(x)
        y, output = self.output.forward(x + h)
        return y, (entered, attended, output)

    def backward(self, dy: Array, cache: Any) -> None:
        """Add the gradients of the parameters."""
        entered, attended, output = cache
        dx = self.output.backward(dy, output)
        self.input.backward(dx + self.attention.backward(dx, attended), entered)


def learn(own: Names, n_heads: int) -> Run:
    """Train on reversing a sentence: each position must attend to its mirror image."""
    rng = np.random.default_rng(3)
    model = Model(own, rng, n_heads)

    def step(_: int) -> float:
        ids = rng.integers(0, 12, (16, LENGTH))
        return learn_tokens(model, ids, ids[:, ::-1])

    return Run(adapt(model, step, steps=STEPS, lr=LR), {})


def train(own: Names) -> Run:
    """Train with four heads, and with one."""
    return Run(learn(own, 4).losses, {"one": learn(own, 1).numbers()["last"]})


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare split_heads and merge_heads with the package's."""
    x = normal(2, 3, 8)
    return {
        "split_heads(x, 4)": (own.split_heads(x, 4), split_heads(x, 4)),
        "merge_heads of the package's split": (own.merge_heads(split_heads(x, 4)), x),
    }


def split_and_merge(own: Names) -> dict[str, Any]:
    """Check that merge_heads inverts split_heads."""
    x = normal(2, 3, 8)
    return {"merge_heads(split_heads(x, 2))": (own.merge_heads(own.split_heads(x, 2)), x)}


def leak_arguments(own: Names) -> tuple[Any, Any, Any]:
    """Return a layer, a sentence and the causal mask, for the search for leaks."""
    layer, mask = own.SelfAttention(8, 2), causal_mask(5, np.empty(0))
    return lambda x: layer.forward(x, mask)[0], normal(1, 5, 8), mask


def dependencies(own: Names) -> dict[str, Any]:
    """Check which outputs depend on which tokens under a causal mask."""
    forward, x, mask = leak_arguments(own)
    return {"which outputs depend on which words": (movement(forward, x) > 0, mask)}


def permuted(own: Names) -> dict[str, Any]:
    """Check that attention without positions commutes with permutations of the tokens."""
    layer, x, order = own.SelfAttention(8, 2), normal(1, 5, 8), [3, 0, 4, 1, 2]
    return {"y of permuted words": (layer.forward(x[:, order])[0], layer.forward(x)[0][:, order])}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    layer, x = own.SelfAttention(8, 2, dtype=np.float32), normal(1, 4, 8).astype(np.float32)
    y, cache = layer.forward(x)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


SPLIT_HEADS = Specimen(
    number=9,
    name="split-heads",
    summary="every gradient is right, and it learns next to nothing",
    symptom="""
    The task is to write a sentence backwards, which one layer of attention can learn. With four heads the
    loss is {bug[last]:.2f} after {bug[steps]} steps, little better than guessing (2.48), and should be
    {right[last]:.2f}. With one single head it is {bug[one]:.2f}, as without the bug.
    """,
    train=train,
    trials=(
        gradients("gradient check of the layer", lambda own: (own.SelfAttention(8, 2), normal(2, 3, 8))),
        gradients("the same with one head", lambda own: (own.SelfAttention(8, 1), normal(2, 3, 8))),
        equal("merging undoes splitting", split_and_merge),
        no_leak("under a causal mask, no output depends on a later word", leak_arguments),
        equal("under a causal mask, every output depends on every earlier word", dependencies),
        equal("a permutation of the words permutes the outputs in the same way", permuted),
        equal("splitting and merging beside the package's", compare_with_package),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "gradcheck finds nothing: backward fits forward. So the function itself is not the one that is "
        "meant.",
        "npformer.checking.leaks.movement(lambda x: layer.forward(x)[0], x) tells which outputs move with "
        "which words. Without a mask, all should. Try two heads and five words, with a causal mask and "
        "without.",
        "Split np.arange(2 * 3 * 4).reshape(2, 3, 4) into two heads, and look at which numbers stand "
        "together.",
    ),
    story="""
    reshape cut the array in the order in which it lies in memory: with H heads the first held the first
    H-th of the sentence, all the width of it, in pieces, and not a part of the width of every word. The
    shapes fit. Merging undid the splitting, so the gradients were right to rounding, and attention without
    a mask still mixed something: {bug[last]:.2f} after {bug[steps]} steps, where yours has
    {right[last]:.3f}. Splitting the width needs an axis more, and then that axis exchanged with the
    positions. Not even a causal mask was broken: the pieces keep their order. But words could not see all
    that they may, and an output changed when the words of the sentence changed places, which attention by
    itself does not notice.
    """,
    repair="""
-    return x.reshape(batch, n_heads, length, width // n_heads)
+    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)

-    return x.reshape(batch, length, n_heads * width)
+    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)
""",
)
