"""Bug: grad[ids] += dy adds only once to a row whose id occurs twice."""

from typing import Any

import numpy as np

from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Descent, learn, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal
from npformer.nn import Linear

WORDS = 16
SHARES = 1 / np.arange(1, WORDS + 1) / (1 / np.arange(1, WORDS + 1)).sum()  # Zipf's law


def train(own: Names) -> Run:
    """Train on predicting the next token in a made-up language with a few very frequent tokens."""
    rng = np.random.default_rng(3)
    follows = rng.permutation(WORDS)
    model = Chain(own.Embedding(WORDS, 8, rng=rng), Linear(8, WORDS, rng=rng, dtype=np.float64))

    def step(_: int) -> float:
        ids = rng.choice(WORDS, (16, 12), p=SHARES)
        return learn_tokens(model, ids, follows[ids])

    losses = learn(model, step, steps=60, lr=1.0, optimizer=Descent(model))
    ids = np.arange(WORDS)
    logits, _ = model.forward(ids)
    right = -np.log(np.exp(logits)[ids, follows] / np.exp(logits).sum(-1))
    return Run(losses, {"often": float(right[0]), "seldom": float(right[-1])})


def by_loop(own: Names) -> dict[str, Any]:
    """Compare the gradient for ids that occur twice, after two batches, with that of a plain loop."""
    layer, right = own.Embedding(7, 4), np.zeros((7, 4))
    for seed in (1, 2):
        ids = np.random.default_rng(seed).integers(0, 7, (3, 5))
        dy = normal(3, 5, 4, seed=seed)
        layer.backward(dy, layer.forward(ids)[1])
        for position in np.ndindex(ids.shape):
            right[ids[position]] += dy[position]
    return {"weight.grad": (layer.weight.grad, right)}


BUG = Specimen(
    summary="learning is too slow, even for very frequent tokens",
    symptom="""
    In a made-up language, each token determines the next token, and a few tokens are much more frequent than
    the others. A model with this embedding learns the language too slowly. After {bug[steps]} steps the loss
    is {bug[last]:.2f}, and without the bug it is {right[last]:.2f}. Even after the most frequent token, which
    occurs many times in each batch, the loss is {bug[often]:.3f} instead of {right[often]:.3f}.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check with five different tokens",
            lambda own: (own.Embedding(7, 4), np.array([[4, 1, 0, 6, 2]])),
        ),
        gradients(
            "gradient check where a token occurs twice in a sentence",
            lambda own: (own.Embedding(7, 4), np.array([[4, 1, 4, 6, 2]])),
        ),
        gradients(
            "gradient check where a token occurs in two sentences",
            lambda own: (own.Embedding(7, 4), np.array([[4, 1], [0, 4]])),
        ),
        equal("the gradients of two batches are those of a simple loop", by_loop),
        float32_stays(
            lambda own: (own.Embedding(7, 4, dtype=np.float32), np.array([[1, 2, 1]])), "y", "weight.grad"
        ),
    ),
    english_hints=(
        "Within one batch, what is the difference between a frequent token and a rare one?",
        "Check the gradients with ids of your own: gradcheck(Embedding(), np.array([[1, 2, 3]])). Then use "
        "ids in which one token occurs twice.",
        "Try the same indexing with a small array: a = np.zeros(3); a[[1, 1, 2]] += 1; print(a).",
    ),
    story="""
    grad[ids] += dy reads the rows, adds dy, and writes the sums back. If an id occurs five times, the same
    row is written five times, and only the last sum remains. So each batch contributed only one of the
    gradients of each token. np.add.at adds all of them. The loss was {bug[last]:.2f}, and with your repair it
    is {right[last]:.2f}. After the most frequent token it was {bug[often]:.3f}, and now it is
    {right[often]:.3f}. A gradient check with a few random ids from a large vocabulary rarely contains the
    same id twice. To find this bug, the check needs a sentence in which a token is repeated.
    """,
    repair="""
-        self.weight.grad[cache.ids] += dy
+        np.add.at(self.weight.grad, cache.ids, dy)
""",
)
