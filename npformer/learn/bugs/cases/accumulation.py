"""Bug: the loss is the mean of the batches' means, though the batches have different numbers of tokens."""

from typing import Any

import numpy as np

from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import Chain, Descent, cut, learn, token_loss, walks
from npformer.learn.bugs.trials import equal
from npformer.nn import Embedding, Linear


def model_of(vocab_size: int = 12, width: int = 8) -> Any:
    """Return a language model: a vector for each token, and logits."""
    rng = np.random.default_rng(3)
    return Chain(
        Embedding(vocab_size, width, rng=rng, dtype=np.float64),
        Linear(width, vocab_size, rng=rng, dtype=np.float64),
    )


def train(own: Names) -> Run:
    """Train on four batches per step: one of long sentences, three of short ones in another language."""
    model, rng = model_of(), np.random.default_rng(4)
    held_out = cut(walks(np.random.default_rng(9), 20, 41)), cut(12 - walks(np.random.default_rng(9), 60, 3))
    tokens, used = sum(ids.size for ids, _ in held_out), []

    def step(_: int) -> float:
        used.append(sum(token_loss(model, *pair) * pair[0].size for pair in held_out) / tokens)
        batches = [cut(walks(rng, 4, 41))] + [cut(12 - walks(rng, 4, 3)) for _ in range(3)]
        return own.loss_and_gradients(model, batches)

    losses = learn(model, step, steps=120, lr=2.0, optimizer=Descent(model))
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
    pairs = zip(model.named_parameters(), whole.parameters(), strict=True)
    gradients = {f"{name}.grad": (mine.grad, its.grad) for (name, mine), its in pairs}
    return {say("the loss"): (float(loss), float(right)), **gradients}


def one_batch(own: Names) -> dict[str, Any]:
    """Compare the loss of one batch with the package's."""
    (pair,) = batches_of(4)
    right = token_loss(model_of(9, 4), *pair, pad_id=0)
    return {say("the loss"): (float(own.loss_and_gradients(model_of(9, 4), [pair])), right)}


def from_zero(own: Names) -> dict[str, Any]:
    """Check that a second call starts from gradients of 0."""
    model, batches = model_of(9, 4), batches_of(4, 4)
    own.loss_and_gradients(model, batches)
    first = np.array(model.parameters()[0].grad)
    own.loss_and_gradients(model, batches)
    return {say("the gradients of a second call"): (model.parameters()[0].grad, first)}


BUG = Specimen(
    summary="four small batches give another result than one large batch",
    symptom="""
    A large batch does not fit into memory. So each optimizer step accumulates the gradients of four small
    batches. The first one contains long sentences, and the others contain very short sentences. After
    {bug[steps]} steps, the held-out loss per token is {bug[last]:.2f}. Without the bug it is
    {right[last]:.2f}. The training itself reports a loss of {bug[reported]:.2f}, which is much lower.
    """,
    train=train,
    trials=(
        equal("the loss of one batch is that of the package", one_batch),
        equal(
            "batches with equal numbers of tokens",
            lambda own: compare_with_one_batch(own, batches_of(4, 4, 4)),
        ),
        equal(
            "batches with different numbers of tokens",
            lambda own: compare_with_one_batch(own, batches_of(6, 1, 2)),
        ),
        equal(
            "batches with different numbers of sentences",
            lambda own: compare_with_one_batch(
                own, [batches_of(6)[0], tuple(x[:1] for x in batches_of(1)[0])]
            ),
        ),
        equal("a second call begins with gradients of 0", from_zero),
    ),
    english_hints=(
        "Two batches of two sentences should give the same loss and gradients as one batch of four "
        "sentences. Find out when they do.",
        "First use batches with equal numbers of tokens. Then use batches with different numbers of tokens.",
        "The loss should be the mean over all tokens of all batches. You know the mean of each batch. With "
        "which weight must each of these means be counted?",
    ),
    story="""
    The loss of each batch is the mean over its tokens. The code gave these four means equal weights. So a
    token in a batch of short sentences counted twenty times as much as a token in the batch of long
    sentences, and the model learned mostly from the short sentences. The held-out loss was {bug[last]:.2f},
    and with your repair it is {right[last]:.2f}. The correct weight of a batch is its share of all tokens. If
    all batches have equally many tokens, the weights are equal and the results are correct. This is the case
    in most tests with random data. Several large training libraries had exactly this bug for years, in
    gradient accumulation and in training on several machines. They corrected it in 2024.
    """,
    repair="""
     total = 0.0
+    tokens = sum(int((targets != PAD).sum()) for _, targets in batches)

-        share = 1 / len(batches)
+        share = int((targets != PAD).sum()) / tokens
""",
)
