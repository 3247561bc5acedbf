"""Sentences longer than any that a model has learnt from: what it makes of them, by how it knows positions.

compare() trains tiny Transformers, 4 s each. After 300 steps on up to 10 words the share of words predicted
rightly was, as the mean of two seeds:

    reversing, length    5    10    12    15    20        copying    5    10    12    15    20
    interleaved        .94   .79   .16   .08   .06                 1.00   .95   .75   .61   .47
    learned            .83   .67   .18   .09   .07                 1.00   .98   .74   .58   .43
    relative          1.00   .90   .76   .59   .42                  .99   .90   .74   .51   .28

To reverse, a model with absolute positions must know how long the sentence is, and has seen no such length;
one with relative positions looks for what stood before the word it wrote last. That is the same at every
length, until words come twice. To copy, the word at the same absolute position is what is wanted.
"""

from collections.abc import Callable, Sequence

import numpy as np

from npformer.data.batches import Example, make_batch
from npformer.data.tasks import reverse_task
from npformer.optim import Adam, cosine
from npformer.training.step import evaluate, loss_and_gradients
from npformer.transformer import Transformer, TransformerConfig

Task = Callable[..., list[Example]]  # copy_task or reverse_task
LONGEST = 10  # the longest sentence that is learnt from
LENGTHS = (5, LONGEST, 12, 15, 20)  # those that are tried
VOCAB = 64  # so many words that few come twice in a sentence


def learn_short(
    positions: str, task: Task = reverse_task, *, steps: int = 300, seed: int = 0, **settings
) -> Transformer:
    """A Transformer of one layer that has seen sentences of up to LONGEST words; settings are the model's."""
    sizes = {"d_model": 48, "d_ff": 96, "n_heads": 4, "n_layers": 1, "max_length": 2 * max(LENGTHS)}
    plain = {"dropout": 0.0, "label_smoothing": 0.0, "max_distance": 4}
    words = {"source_vocab": VOCAB, "target_vocab": VOCAB}
    config = TransformerConfig().replace(positions=positions, **(words | sizes | plain | settings))
    model = Transformer(config, rng=np.random.default_rng([seed, 0]))
    rng, adam = np.random.default_rng([seed, 1]), Adam(model)
    learning_rate = cosine(0.006, steps + 1, steps // 6)
    for step in range(1, steps + 1):
        batch = make_batch(task(64, length=LONGEST, vocab=VOCAB, rng=rng))
        loss_and_gradients(model, [batch])
        adam.step(learning_rate(step))
    return model


def accuracy_by_length(
    model: Transformer, task: Task = reverse_task, *, lengths: Sequence[int] = LENGTHS, seed: int = 0
) -> dict[int, float]:
    """The share of words predicted rightly, given the right ones before, in sentences of each length."""
    rng = np.random.default_rng([seed, 2])
    accuracy = {}
    for length in lengths:
        drawn = task(100 * length, length=length, vocab=VOCAB, rng=rng)
        batch = make_batch([example for example in drawn if len(example[0]) == length])  # about 100
        accuracy[length] = evaluate(model, [batch]).accuracy
    return accuracy


def compare(
    positions: Sequence[str] = ("interleaved", "learned", "relative"), task: Task = reverse_task, **settings
) -> dict[str, dict[int, float]]:
    """accuracy_by_length for each kind of positions; settings are those of learn_short."""
    return {name: accuracy_by_length(learn_short(name, task, **settings), task) for name in positions}
