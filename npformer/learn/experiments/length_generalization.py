"""Test a Transformer on longer sentences than it was trained on, for each kind of position encoding.

To reverse a sentence, a model with absolute positions must know the sentence's length, and longer sentences
have lengths that did not occur in training. A model with relative positions attends to the token before the
one that it wrote last. If no token occurs twice, this method is right at every length. But the trained models
still get worse on longer sentences. To copy a sentence, a model with absolute positions attends to the source
token at the position that it writes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npformer.data.dataset import reverse_task
from npformer.data.loader import Example, make_batch
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.training import evaluate, loss_and_gradients
from npformer.training.optimizer import Adam, cosine

Task = Callable[..., list[Example]]  # copy_task or reverse_task
LONGEST = 10  # the length of the longest sentence in training
LENGTHS = (5, LONGEST, 12, 15, 20)  # the lengths that are tested
VOCAB = 64  # large enough that most tokens of a sentence occur only once

# the result of `compare` for reversing and for copying: the accuracy at each of LENGTHS, mean of two seeds
MEASURED = {
    "interleaved": ((0.94, 0.79, 0.16, 0.08, 0.06), (1.00, 0.95, 0.75, 0.61, 0.47)),
    "learned": ((0.83, 0.67, 0.18, 0.09, 0.07), (1.00, 0.98, 0.74, 0.58, 0.43)),
    "relative": ((1.00, 0.90, 0.76, 0.59, 0.42), (0.99, 0.90, 0.74, 0.51, 0.28)),
}


def learn_short(
    positions: str, task: Task = reverse_task, *, steps: int = 300, seed: int = 0, **settings: Any
) -> Transformer:
    """Train a Transformer with one layer on sentences of up to LONGEST tokens. This takes 4 seconds.

    Args:
        positions: The kind of position encoding.
        task: The function that makes the examples.
        steps: The number of training steps.
        seed: The seed of the parameters and of the examples.
        settings: Other settings of the model.

    Returns:
        The trained model.
    """
    sizes = {"d_model": 48, "d_ff": 96, "n_heads": 4, "n_layers": 1, "max_length": 2 * max(LENGTHS)}
    plain = {"dropout": 0.0, "label_smoothing": 0.0, "max_distance": 4}
    vocabularies = {"source_vocab": VOCAB, "target_vocab": VOCAB}
    config = TransformerConfig().replace(positions=positions, **(vocabularies | sizes | plain | settings))
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
    """Return the share of tokens that are predicted right in sentences of each length.

    Every prediction is made from the right tokens before it.

    Args:
        model: The model.
        task: The function that makes the examples.
        lengths: The lengths of the sentences.
        seed: The seed of the examples.
    """
    rng = np.random.default_rng([seed, 2])
    accuracy = {}
    for length in lengths:
        drawn = task(100 * length, length=length, vocab=VOCAB, rng=rng)
        batch = make_batch([example for example in drawn if len(example[0]) == length])  # about 100
        accuracy[length] = evaluate(model, [batch]).accuracy
    return accuracy


def compare(
    positions: Sequence[str] = ("interleaved", "learned", "relative"),
    task: Task = reverse_task,
    **settings: Any,
) -> dict[str, dict[int, float]]:
    """Train a model with each kind of position encoding and return its accuracy at each length.

    Args:
        positions: The kinds of position encoding.
        task: The function that makes the examples.
        settings: Arguments of `learn_short`.
    """
    return {name: accuracy_by_length(learn_short(name, task, **settings), task) for name in positions}
