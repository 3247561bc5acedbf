"""Bug: the predicted position is a share of the padded length, not of the sentence's own length."""

from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.language import say
from npformer.learn.bugs.specimen import Names, Run, Specimen
from npformer.learn.bugs.toys import learn
from npformer.learn.bugs.trials import (
    as_right_layer,
    equal,
    float32_stays,
    gradients,
    normal,
    random_parameters,
    with_parameters_of,
)
from npformer.nn import Linear
from npformer.nn.attention import LocalPredictive, Similarity
from npformer.nn.module import Module

SHORTEST, LONGEST, VOCAB_SIZE = 4, 12, 8
REAL = np.arange(7) < np.array([[7], [4]])  # (B, S): the second sentence has four tokens
COMPARED = ("context", "dqueries", "dmemory", "v.grad", "position.grad")


class Model(Module):
    """A model that reverses a sentence: the states hold their position, the memory tokens and positions."""

    def __init__(self, own: Names, rng: np.random.Generator) -> None:
        self.attention = own.LocalAttention(3, VOCAB_SIZE + LONGEST, reach=2, rng=rng)
        self.read = Linear(VOCAB_SIZE + LONGEST, VOCAB_SIZE, rng=rng, dtype=np.float64)

    def loss(self, inputs: Any, targets: Array, *, learn: bool = False) -> float:
        """Return the cross-entropy at the tokens.

        Args:
            inputs: The states of the decoder (B, T, 3), the memory (B, S, V + S), and the mask (B, S).
            targets: The target tokens, (B, T), −1 at padding.
            learn: True to add the gradients.
        """
        context, attended = self.attention.forward(*inputs)
        logits, read = self.read.forward(context)
        loss, judged = cross_entropy(logits, targets, pad_id=-1)
        if learn:
            dlogits = cross_entropy_backward(1.0, judged)
            self.attention.backward(self.read.backward(dlogits, read), attended)
        return float(loss)


def sentences(rng: np.random.Generator, lengths: Any, padded: int) -> tuple[Any, Any, Any, Any]:
    """Return random sentences: states (B, T, 3), memory (B, S, V + S), mask (B, S), targets (B, T).

    Args:
        rng: The generator.
        lengths: The length of each sentence, (B, 1).
        padded: The length to which sentences are padded, S = T.
    """
    places = np.arange(padded)
    tokens = rng.integers(0, VOCAB_SIZE, (len(lengths), padded))
    mask, to_come = places < lengths, lengths - 1 - places
    written = np.broadcast_to(places, mask.shape)
    names = np.broadcast_to(np.eye(LONGEST)[:padded], (*mask.shape, LONGEST))
    memory = np.concatenate([np.eye(VOCAB_SIZE)[tokens], names], -1)
    states = np.stack([np.ones(mask.shape), written / 5, to_come / 5], -1)
    targets = np.take_along_axis(tokens, np.maximum(to_come, 0), 1)
    return states, memory, mask, np.where(mask, targets, -1)


def train(own: Names) -> Run:
    """Train on batches of one length each, and evaluate on sentences of all lengths in one batch."""
    rng = np.random.default_rng(1)
    model, used = Model(own, rng), []
    lengths = np.random.default_rng(4).integers(SHORTEST, LONGEST + 1, (64, 1))
    *mixed, wanted = sentences(np.random.default_rng(5), lengths, LONGEST)

    def step(_: int) -> float:
        used.append(model.loss(mixed, wanted))
        length = int(rng.integers(SHORTEST, LONGEST + 1))
        *inputs, targets = sentences(rng, np.full((32, 1), length), length)
        return model.loss(inputs, targets, learn=True)

    learn(model, step, steps=300, lr=0.03)
    alone = []  # the same sentences, one by one
    for i, n in enumerate(lengths[:, 0]):
        alone += [model.loss([a[i : i + 1, :n] for a in mixed], wanted[i : i + 1, :n])] * n
    few = lengths[:, 0] <= 6
    short = model.loss([a[few] for a in mixed], wanted[few])
    return Run(used, {"bare": float(np.mean(alone)), "short": short})


def layer_of(own: Names, dtype: Any = np.float64) -> Any:
    """Return the file's attention with larger weights, so that p is not S / 2 everywhere."""
    return random_parameters(own.LocalAttention(4, 5, reach=2, dtype=dtype), dtype)


def example_sentences() -> tuple[Any, Any]:
    """Return the states and the memory of two sentences."""
    return normal(2, 3, 4), normal(2, 7, 5, seed=3)


def beside_package(mask: Array) -> Any:
    """Return a function that returns the file's attention, the package's, and inputs."""

    def make(own: Names) -> Any:
        mine = layer_of(own)
        right = LocalPredictive(Similarity("general", 4, 5, dtype=np.float64), reach=2, dtype=np.float64)
        return mine, with_parameters_of(mine, right), *example_sentences(), mask

    return make


def with_and_without(own: Names) -> dict[str, Any]:
    """Compare the context of a sentence of four tokens beside a longer one with that of it alone."""
    layer, (states, memory) = layer_of(own), example_sentences()
    beside, _ = layer.forward(states, memory, REAL)
    alone, _ = layer.forward(states[1:], memory[1:, :4], REAL[1:, :4])
    return {say("the context in a batch with a longer sentence"): (beside[1:], alone)}


def further_padding(own: Names) -> dict[str, Any]:
    """Compare the context with and without more padding at the end of all sentences."""
    layer, (states, memory) = layer_of(own), example_sentences()
    context, _ = layer.forward(states, memory, REAL)
    longer = np.pad(memory, ((0, 0), (0, 3), (0, 0)))
    padded, _ = layer.forward(states, longer, np.pad(REAL, ((0, 0), (0, 3))))
    return {say("the context with more padding"): (padded, context)}


BUG = Specimen(
    summary="short sentences get worse results in a batch with long ones",
    symptom="""
    Local attention predicts a position for each query and attends to a window around this position. It is
    trained with batches in which all sentences have the same length, and it learns well: the loss on held-out
    sentences, one at a time, is {bug[bare]:.2f}. Then these sentences are put into one batch, although their
    lengths differ. Now the loss is {bug[last]:.2f}, and {bug[short]:.2f} for the sentences of up to six
    tokens. Without the bug, the losses are {right[last]:.2f} and {right[short]:.2f}. The curves show the loss
    of this mixed batch.
    """,
    train=train,
    trials=(
        gradients(
            "gradient check of the layer, with padding",
            lambda own: (layer_of(own), *example_sentences(), REAL),
        ),
        as_right_layer(
            "without padding, values and gradients are those of the package",
            beside_package(REAL | True),
            *COMPARED,
        ),
        equal("a sentence gives the same result alone and in a batch with a longer one", with_and_without),
        equal("more padding after all sentences changes nothing", further_padding),
        as_right_layer(
            "with padding, values and gradients are those of the package", beside_package(REAL), *COMPARED
        ),
        float32_stays(
            lambda own: (layer_of(own, np.float32), *example_sentences(), REAL),
            "context",
            "dqueries",
            "dmemory",
        ),
    ),
    english_hints=(
        "cache.weights shows that padding never gets a weight. So the mask is correct. Is the position of "
        "the window correct?",
        "Print cache.predicted.p for a sentence alone, and for the same sentence in a batch with a longer "
        "one.",
        "p is a sigmoid times a length. Which length does the code use for a sentence of four tokens that is "
        "padded to seven?",
    ),
    story="""
    The predicted position is a sigmoid, a number between 0 and 1, times the length of the sentence. The code
    used the length of the padded array. If all sentences of a batch have the same length, this is the same
    number. But in a batch with a longer sentence, the windows of a short sentence were too far to the right.
    Some windows contained only padding, and then the context was 0. The loss of the batch with different
    lengths was {bug[last]:.2f}. With your repair it is {right[last]:.2f}. The mask was correct, so padding
    never got a weight, and backward was the correct gradient of forward. In the formula, S is the number of
    tokens without padding. It can be computed from the mask.
    """,
    repair="""
-        length = np.full((len(memory), 1), memory.shape[1])  # (B, 1): S tokens
+        length = mask.sum(-1, keepdims=True)  # (B, 1): S tokens
""",
)
