"""Bug: grad[ids] += dy adds only once to a row whose id occurs twice."""

from typing import Any

import numpy as np

from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, learn_tokens
from npformer.learn.bugs.trials import equal, float32_stays, gradients, normal
from npformer.nn import Linear

STEPS, LR, WORDS = 60, 1.0, 16
SHARES = 1 / np.arange(1, WORDS + 1) / (1 / np.arange(1, WORDS + 1)).sum()  # Zipf: a few words are everywhere


def train(own: Names) -> Run:
    """Train on predicting the next token in a made-up language with a few very frequent tokens."""
    rng = np.random.default_rng(3)
    follows = rng.permutation(WORDS)
    model = Chain(own.Embedding(WORDS, 8, rng=rng), Linear(8, WORDS, rng=rng, dtype=np.float64))

    def step(_: int) -> float:
        ids = rng.choice(WORDS, (16, 12), p=SHARES)
        return learn_tokens(model, ids, follows[ids])

    losses = descend(model, step, steps=STEPS, lr=LR)
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


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that is computed from float32."""
    layer, ids = own.Embedding(7, 4, dtype=np.float32), np.array([[1, 2, 1]])
    y, cache = layer.forward(ids)
    layer.backward(np.ones_like(y), cache)
    return {"y": y, "weight.grad": layer.weight.grad}


EMBEDDING = Specimen(
    number=3,
    name="embedding",
    summary="it learns too slowly, and frequent words suffer most",
    symptom="""
    In a language where each word calls for one other, and a few words are everywhere, a model with this
    embedding learns slowly: the loss is {bug[last]:.2f} after {bug[steps]} steps, and should be
    {right[last]:.2f}. Frequent words suffer most: that of the most frequent one is {bug[often]:.3f} and not
    {right[often]:.3f}.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check on five different words",
            lambda own: (own.Embedding(7, 4), np.array([[4, 1, 0, 6, 2]])),
        ),
        gradients(
            "gradient check where a word comes twice in a sentence",
            lambda own: (own.Embedding(7, 4), np.array([[4, 1, 4, 6, 2]])),
        ),
        gradients(
            "gradient check where two sentences share a word",
            lambda own: (own.Embedding(7, 4), np.array([[4, 1], [0, 4]])),
        ),
        equal("the gradients of two batches beside a loop", by_loop),
        float32_stays("float32 stays float32", float32_results),
    ),
    hints=(
        "What differs between a frequent word and a rare one, within one batch?",
        "Check gradients on ids of your own: gradcheck(Embedding(), np.array([[1, 2, 3]])), and then with "
        "a word that comes twice.",
        "Try it on a small array: a = np.zeros(3); a[[1, 1, 2]] += 1; print(a).",
    ),
    story="""
    grad[ids] += dy reads the rows, adds, and writes them back: of a row that is named five times only the
    last write stays. So a batch taught each word once, however often it came: the loss was {bug[last]:.2f},
    and is {right[last]:.2f} with yours; {bug[often]:.3f} for the most frequent word, where yours has
    {right[often]:.3f}. np.add.at adds every time. A check on a few random ids out of many thousand seldom
    meets one twice: it must be given a sentence that repeats a word.
    """,
    repair="""
-        self.weight.grad[cache.ids] += dy
+        np.add.at(self.weight.grad, cache.ids, dy)
""",
)
