"""Bug: the loss is the mean of the batches' means, though the batches have different numbers of tokens."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toy_training import Chain, descend, token_loss, walks
from npformer.learn.bugs.trials import equal
from npformer.nn import Embedding, Linear

STEPS, LR = 120, 2.0


def model_of(vocab_size: int = 12, width: int = 8) -> Any:
    """Return a language model: a vector for each token, and logits."""
    rng = np.random.default_rng(3)
    return Chain(
        Embedding(vocab_size, width, rng=rng, dtype=np.float64),
        Linear(width, vocab_size, rng=rng, dtype=np.float64),
    )


def cut(ids: Array) -> tuple[Any, Any]:
    """Return (ids, targets) for the prediction of the next token."""
    return ids[:, :-1], ids[:, 1:]


def train(own: Names) -> Run:
    """Train on four batches per step: one of long sentences, three of short ones in another language."""
    model, rng = model_of(), np.random.default_rng(4)
    held_out = cut(walks(np.random.default_rng(9), 20, 41)), cut(12 - walks(np.random.default_rng(9), 60, 3))
    used = []

    def step(_: int) -> float:
        tokens = sum(ids.size for ids, _ in held_out)
        used.append(sum(token_loss(model, *pair) * pair[0].size for pair in held_out) / tokens)
        batches = [cut(walks(rng, 4, 41))] + [cut(12 - walks(rng, 4, 3)) for _ in range(3)]
        return own.loss_and_gradients(model, batches)

    losses = descend(model, step, steps=STEPS, lr=LR)
    return Run(used, {"reported": float(np.mean(losses[-6:]))})


def batches_of(*lengths: Any) -> Any:
    """Return a batch of two sentences for each length, padded to 6."""
    rng = np.random.default_rng(1)
    made = []
    for length in lengths:
        ids = np.zeros((2, 7), np.int64)
        ids[:, : length + 1] = rng.integers(1, 9, (2, length + 1))
        made.append(cut(ids))
    return made


def compare_with_one_batch(own: Names, batches: Any) -> dict[str, Any]:
    """Compare the loss and the gradients of several batches with those of one batch that holds them all."""
    model, whole = model_of(9, 4), model_of(9, 4)
    loss = own.loss_and_gradients(model, batches)
    together = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    right = own.loss_and_gradients(whole, [tuple(together)])
    return {
        "the loss": (float(loss), float(right)),
        **{
            f"{name}.grad": (p.grad, q.grad)
            for (name, p), (_, q) in zip(model.named_parameters(), whole.named_parameters(), strict=True)
        },
    }


def one_batch(own: Names) -> dict[str, Any]:
    """Compare the loss of one batch with the package's."""
    (pair,) = batches_of(4)
    right = token_loss(model_of(9, 4), *pair, pad_id=0)
    return {"the loss": (float(own.loss_and_gradients(model_of(9, 4), [pair])), right)}


def from_zero(own: Names) -> dict[str, Any]:
    """Check that a second call starts from gradients of 0."""
    model, batches = model_of(9, 4), batches_of(4, 4)
    own.loss_and_gradients(model, batches)
    first = np.array(model.parameters()[0].grad)
    own.loss_and_gradients(model, batches)
    return {"the gradients of a second call": (model.parameters()[0].grad, first)}


ACCUMULATION = Specimen(
    number=16,
    name="accumulation",
    summary="four small batches do not give what one large one gives",
    symptom="""
    A step is made from four small batches, since the large one does not fit into memory. The first holds
    long sentences, the others very short ones. The loss of a held-out word stays at {bug[last]:.2f} after
    {bug[steps]} steps, where {right[last]:.2f} is possible; the loss that the training reports is
    {bug[reported]:.2f}.
    """,
    train=train,
    trials=(
        equal("one batch: the loss beside the package's", one_batch),
        equal("batches of equally many words", lambda own: compare_with_one_batch(own, batches_of(4, 4, 4))),
        equal(
            "batches of different numbers of words",
            lambda own: compare_with_one_batch(own, batches_of(6, 1, 2)),
        ),
        equal(
            "batches of different numbers of sentences",
            lambda own: compare_with_one_batch(
                own, [batches_of(6)[0], tuple(x[:1] for x in batches_of(1)[0])]
            ),
        ),
        equal("a second call starts from 0", from_zero),
    ),
    hints=(
        "Two batches of two sentences, or one of four: loss and gradients should be the same. When are they?",
        "Give it batches of the same number of words, and then of different numbers.",
        "What is the mean of all words, in terms of the batches' means? How much does each batch count?",
    ),
    story="""
    Each batch's loss was a mean over its own words, and the four means counted alike: a word in a batch of
    short sentences weighed twenty times what a word in a long one did. The model learnt mostly from the
    short ones: {bug[last]:.2f} for a held-out word, where yours has {right[last]:.2f}. Batches of equally
    many words agree to the last digit, and such is every test with random data. A batch must count by its
    share of the words. Several large training libraries had exactly this bug for years, in gradient
    accumulation and across machines, and corrected it in 2024.
    """,
    repair="""
     total = 0.0
+    tokens = sum(int((targets != PAD).sum()) for _, targets in batches)

-        share = 1 / len(batches)
+        share = int((targets != PAD).sum()) / tokens
""",
)
