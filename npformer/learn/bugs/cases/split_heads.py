"""Bug: the heads are made by a reshape without a transposition, which mixes positions."""

from typing import Any

import numpy as np

from npformer.checking.leaks import movement
from npformer.functional import split_heads
from npformer.functional.masks import causal_mask
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Residual, backwards, learn, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, no_leak, normal
from npformer.nn import InputEmbedding, Linear

LENGTH = 9


def trained(own: Names, n_heads: int) -> Run:
    """Train on reversing a sentence: each position must attend to its mirror image."""
    rng = np.random.default_rng(3)
    model = Chain(
        InputEmbedding(12, 16, LENGTH, rng=rng, dtype=np.float64),
        Residual(own.SelfAttention(16, n_heads, rng=rng)),
        Linear(16, 12, rng=rng, dtype=np.float64),
    )
    return Run(
        learn(model, lambda _: learn_tokens(model, *backwards(rng, 16, LENGTH)), steps=200, lr=0.01), {}
    )


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare split_heads and merge_heads with the package's."""
    x = normal(2, 3, 8)
    return {
        "split_heads(x, 4)": (own.split_heads(x, 4), split_heads(x, 4)),
        say("merge_heads of the package's split"): (own.merge_heads(split_heads(x, 4)), x),
    }


def split_and_merge(own: Names) -> dict[str, Any]:
    """Check that merge_heads inverts split_heads."""
    x = normal(2, 3, 8)
    return {"merge_heads(split_heads(x, 2))": (own.merge_heads(own.split_heads(x, 2)), x)}


def under_mask(own: Names) -> tuple[Any, Any, Any]:
    """Return a layer under the causal mask, a sentence and the mask, for the search for leaks."""
    layer, mask = own.SelfAttention(8, 2), causal_mask(5, np.empty(0))
    return lambda x: layer.forward(x, mask), normal(1, 5, 8), mask


def dependencies(own: Names) -> dict[str, Any]:
    """Check which outputs depend on which tokens under a causal mask."""
    forward, x, mask = under_mask(own)
    return {say("which outputs depend on which tokens"): (movement(lambda x: forward(x)[0], x) > 0, mask)}


def permuted(own: Names) -> dict[str, Any]:
    """Check that attention without positions commutes with permutations of the tokens."""
    layer, x, order = own.SelfAttention(8, 2), normal(1, 5, 8), [3, 0, 4, 1, 2]
    return {say("y of permuted tokens"): (layer.forward(x[:, order])[0], layer.forward(x)[0][:, order])}


BUG = Specimen(
    summary="all gradients are correct, but the model learns nearly nothing",
    symptom="""
    A model with one layer of attention learns to write a sentence backwards. With four heads its loss is
    {bug[last]:.2f} after {bug[steps]} steps, which is hardly better than guessing (2.48). Without the bug it
    is {right[last]:.2f}. With a single head the loss is {bug[one]:.2f}, with and without the bug.
    """,
    train=lambda own: Run(trained(own, 4).losses, {"one": trained(own, 1).numbers()["last"]}),
    trials=(
        gradients("gradient check of the layer", lambda own: (own.SelfAttention(8, 2), normal(2, 3, 8))),
        gradients(
            "gradient check of the layer with one head",
            lambda own: (own.SelfAttention(8, 1), normal(2, 3, 8)),
        ),
        equal("merge_heads is the inverse of split_heads", split_and_merge),
        no_leak("under a causal mask, no output depends on a later token", under_mask),
        equal("under a causal mask, every output depends on every earlier token", dependencies),
        equal("a permutation of the tokens permutes the outputs in the same way", permuted),
        equal("split_heads and merge_heads give the same as the package", compare_with_package),
        float32_stays(lambda own: (own.SelfAttention(8, 2, dtype=np.float32), normal(1, 4, 8)), "y", "dx"),
    ),
    english_hints=(
        "gradcheck finds no error, because backward is the correct gradient of forward. So forward does not "
        "compute the intended function.",
        "npformer.checking.leaks.movement(lambda x: layer.forward(x)[0], x) shows which outputs change if a "
        "token changes. Without a mask, every output should depend on every token. Try two heads and five "
        "tokens, without a mask and with a causal mask.",
        "Split np.arange(2 * 3 * 4).reshape(2, 3, 4) into two heads, and print the result. Which numbers "
        "does each head get, and which numbers should it get?",
    ),
    story="""
    reshape keeps the order of the numbers in memory. So with H heads, the first head did not get a slice of
    the vector of every token. It got the complete vectors of the first tokens of the sentence, cut into
    pieces. The shapes were correct. To split the width, first reshape to an additional axis, and then
    exchange this axis with the positions. The loss was {bug[last]:.2f} after {bug[steps]} steps. With your
    repair it is {right[last]:.3f}. merge_heads was the inverse of split_heads, so all gradients were correct.
    Not even a causal mask was violated, because the pieces keep their order. But many outputs did not depend
    on tokens to which they may attend. Also, a permutation of the tokens did not simply permute the outputs,
    as it must in attention without positional encodings.
    """,
    repair="""
-    return x.reshape(batch, n_heads, length, width // n_heads)
+    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)

-    return x.reshape(batch, length, n_heads * width)
+    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)
""",
)
