"""Train a model to read a symbol at a place, with soft attention and three kinds of hard attention.

The model and its task are in npformer/models/place_reader.py.
"""

from typing import NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.hard import score_function
from npformer.models.place_reader import Reader, make_places
from npformer.nn.attention.hard import MovingBaseline
from npformer.training.optimizer import Adam


class Learned(NamedTuple):
    """The result of training one model."""

    reader: Reader
    accuracy: float  # on new examples, where hard attention reads the most probable place
    curve: Array  # (steps,) the mean log p(y) at each step


def learn(
    method: str,
    *,
    steps: int = 200,
    batch: int = 8,
    draws: int = 1,
    lr: float = 0.03,
    entropy_weight: float = 0.0,
    seed: int = 0,
) -> Learned:
    """Train a new model. The same arguments give the same result.

    Args:
        method: One of METHODS of the model.
        steps: The number of training steps.
        batch: The number of examples in a batch.
        draws: The number of places that hard attention draws for each example.
        lr: The learning rate.
        entropy_weight: The weight of the entropy of the attention in the loss.
        seed: The seed of the parameters, the examples and the draws.

    Returns:
        The model, its accuracy and its learning curve.
    """
    rng = np.random.default_rng(seed)
    reader = Reader(method, rng=rng)
    adam, baseline, curve = Adam(reader), MovingBaseline(), []
    drawing = {} if method == "soft" else {"train": True, "rng": rng, "draws": draws}
    for _ in range(steps):
        places = make_places(batch, rng)
        log_probs, cache = reader.forward(places.query, places.memory, **drawing)
        at_symbol = (..., np.arange(batch), 0, places.symbol)
        log_likelihood = log_probs[at_symbol]  # ([N,] B)
        choices = {}
        if method.startswith("hard"):
            b = 0.0 if method == "hard, no baseline" else baseline.value
            dlog_prob, dentropy = score_function(log_likelihood, b, entropy_weight=entropy_weight)
            choices = {"dlog_prob": dlog_prob, "dentropy": dentropy}
            baseline.update(log_likelihood)
        # loss = -mean log p(y); backward computes its gradient through the context
        dlog_probs = np.zeros_like(log_probs)
        dlog_probs[at_symbol] = -1 / log_likelihood.size
        reader.zero_grad()
        reader.backward(dlog_probs, cache, **choices)
        adam.step(lr)
        curve.append(log_likelihood.mean())
    return Learned(reader, accuracy(reader, np.random.default_rng(1_000_000 + seed)), np.array(curve))


def accuracy(reader: Reader, rng: np.random.Generator, n: int = 1000) -> float:
    """Return the share of n new examples for which the model predicts the right symbol.

    Args:
        reader: The model.
        rng: The generator of the examples.
        n: The number of examples.
    """
    places = make_places(n, rng)
    log_probs, _ = reader.forward(places.query, places.memory)
    return float((log_probs[:, 0].argmax(-1) == places.symbol).mean())
