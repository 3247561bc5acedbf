"""Bug: the mask comes after the softmax, so the denominator includes the hidden keys."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import attention, attention_backward
from npformer.functional.masks import causal_mask, padding_mask
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Residual, backwards, learn, learn_tokens, token_loss
from npformer.learn.bugs.trials import as_right_layer, equal, float32_stays, gradients, no_leak, normal
from npformer.nn import InputEmbedding, Linear

LENGTH, MOST = 6, 40
MASK = causal_mask(5, np.empty(0))


class Attention(Residual):
    """The file's attention with a residual connection. Queries, keys and values are linear in x."""

    def __init__(self, own: Names, rng: np.random.Generator) -> None:
        self.own = own
        self.projections = [Linear(16, 16, rng=rng, dtype=np.float64) for _ in "qkv"]

    def forward(self, x: Array, **settings: Any) -> tuple[Any, Any]:
        """Return (y, cache). The setting mask goes to the attention."""
        parts, made = zip(*(layer.forward(x) for layer in self.projections), strict=True)
        h, attended = self.own.attention(*parts, settings.get("mask"))
        return x + h, (made, attended)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx."""
        made, attended = cache
        dparts = self.own.attention_backward(dy, attended)
        return sum(map(Linear.backward, self.projections, dparts, made), dy)


def train(own: Names) -> Run:
    """Train on reversing sentences of six tokens, and evaluate on sentences with padding at their ends."""
    rng, used = np.random.default_rng(3), []
    model = Chain(
        InputEmbedding(12, 16, MOST, rng=rng, dtype=np.float64),
        Attention(own, rng),
        Linear(16, 12, rng=rng, dtype=np.float64),
    )
    held_out = backwards(np.random.default_rng(4), 12, LENGTH, lowest=1)
    padded, targets = (np.pad(x, ((0, 0), (0, MOST - LENGTH))) for x in held_out)
    mask = padding_mask(padded)[:, 0]

    def step(_: int) -> float:
        used.append(token_loss(model, padded, targets, pad_id=0, mask=mask))
        return learn_tokens(model, *backwards(rng, 16, LENGTH, lowest=1))

    learn(model, step, steps=170, lr=0.01)
    return Run(used, {"bare": token_loss(model, *held_out)})


def inputs(*batch: Any) -> Any:
    """Return queries, keys and values of five positions."""
    return [normal(*batch, 5, 4, seed=seed) for seed in (1, 2, 3)]


def pair(own: Names) -> tuple[Any, Any]:
    """Return the file's two functions."""
    return own.attention, own.attention_backward


def beside_package(mask: Array | None) -> Any:
    """Return a function that returns the file's pair, the package's, and inputs."""
    return lambda own: (pair(own), (attention, attention_backward), *inputs(2), mask)


def rows(own: Names) -> dict[str, Any]:
    """Compare y for values of 1, which is the sum of a row of weights, with 1."""
    q, k, v = inputs()
    y, _ = own.attention(q, k, np.ones_like(v), MASK)
    return {say("the sum of each row of weights"): (y, np.ones((5, 4)))}


def loud(own: Names) -> dict[str, Any]:
    """Mask a key with a very large score: a softmax over all keys would give all other keys the weight 0."""
    q, k, v = inputs()
    k[4] *= 1e4 * np.sign(k[4] @ q[0])
    return {"y[:4]": (own.attention(q[:4], k, v, MASK[:4])[0], attention(q[:4], k, v, MASK[:4])[0])}


BUG = Specimen(
    summary="the weights look correct in plots, but padding raises the loss",
    symptom="""
    A model is trained on sentences of one length, and it learns well: its loss on held-out sentences is
    {bug[bare]:.2f}, and {right[bare]:.2f} without the bug. The attention weights are exactly 0 where the mask
    is False. Then padding is appended to the same held-out sentences. The mask hides the padding, but the
    loss becomes {bug[last]:.2f}. Without the bug it is {right[last]:.2f}. The curves show the loss on the
    padded sentences.
    """,
    train=train,
    trials=(
        gradients("gradient check with a causal mask", lambda own: (pair(own), *inputs(2), MASK)),
        as_right_layer(
            "values and gradients without a mask", beside_package(None), "y", "dq", "dk", "dv", seed=6
        ),
        equal("each row of weights sums to 1", rows),
        equal("the output if a masked key has a very large score", loud),
        no_leak(
            "no output depends on a token that the mask hides",
            lambda own: (lambda x: own.attention(x, x, x, MASK), normal(5, 4), MASK),
        ),
        as_right_layer(
            "values and gradients with a mask", beside_package(MASK), "y", "dq", "dk", "dv", seed=6
        ),
        float32_stays(lambda own: (pair(own), *inputs(), MASK), "y", "dq", "dk", "dv"),
    ),
    english_hints=(
        "The gradients are correct, and the weights are 0 where they should be. Are the other weights "
        "correct?",
        "show(cache) prints the arrays of the cache. Compute the sum of each row of weights, without a mask "
        "and with a mask.",
        "npformer.assert_no_leak reports that an output depends on a token whose weight is 0. Which step of "
        "the forward pass still uses the score of this token?",
    ),
    story="""
    The mask was applied after the softmax, by setting weights to 0. So the denominator of the softmax still
    contained the masked keys. With more masked keys, the remaining weights became smaller, and they depended
    on the tokens that the mask hides. A plot of the weights shows zeros at the correct positions. Without
    padding the loss was {bug[bare]:.2f}. With padding it was {bug[last]:.2f}, and with your repair it is
    {right[last]:.2f}. In a decoder, this bug gives every position information about later tokens. backward
    was the correct gradient of forward, so all gradient checks passed. Three tests find the bug: a search for
    leaks, the sum of each row of weights, and the comparison of a sentence with and without padding.
    """,
    repair="""
-    soft: Any  # (..., T, S) the softmax of the scores

-    mask: Any  # (..., T, S) or None

-    soft, _ = softmax(scores)  # (..., T, S)
-    weights = soft if mask is None else np.where(mask, soft, 0)
-    return weights @ v, AttentionCache(q, k, v, soft, weights, mask)
+    if mask is not None:
+        scores = np.where(mask, scores, -np.inf)
+    weights, _ = softmax(scores)  # (..., T, S)
+    return weights @ v, AttentionCache(q, k, v, weights)

-    q, k, v, soft, weights, mask = cache
+    q, k, v, weights = cache

-    # a masked weight is 0 whatever its score
-    dsoft = dweights if mask is None else np.where(mask, dweights, 0)
-    dscores = softmax_backward(dsoft, soft) / math.sqrt(q.shape[-1])  # (..., T, S)
+    # the weight of a masked key is 0, so the gradient of its score is 0
+    dscores = softmax_backward(dweights, weights) / math.sqrt(q.shape[-1])  # (..., T, S)
""",
)
