"""The training ground: small models of the specimens' layers, and how they learn, each within a second."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.module import Module
from npformer.optim import Adam

Step = Callable[[int], float]  # the step's number -> its loss; gradients are left in the model


class Chain(Module):
    """Layers one after the other; a pair (f, f_backward) counts as a layer."""

    def __init__(self, *layers):
        self.layers = [Pair(*layer) if isinstance(layer, tuple) else layer for layer in layers]

    def forward(self, x, **settings):
        """settings go to every layer but the pairs. Returns (y, cache)."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x) if isinstance(layer, Pair) else layer.forward(x, **settings)
            caches.append(cache)
        return x, tuple(caches)

    def backward(self, dy, cache):
        """Returns dx."""
        for layer, layer_cache in zip(self.layers[::-1], cache[::-1], strict=True):
            dy = layer.backward(dy, layer_cache)
        return dy


class Pair(Module):
    """A pair of functions as a layer."""

    def __init__(self, f, f_backward):
        self.forward, self.backward = f, f_backward


def descend(model: Any, step: Step, *, steps: int, lr: float) -> list[float]:
    """Plain gradient descent: value -= lr · gradient. Returns the losses, one a step."""
    losses = []
    for number in range(steps):
        model.zero_grad()
        losses.append(float(step(number)))
        for parameter in model.parameters():
            parameter.value -= lr * parameter.grad
    return losses


def adapt(model: Any, step: Step, *, steps: int, lr: float) -> list[float]:
    """The same with Adam."""
    adam, losses = Adam(model, betas=(0.9, 0.98)), []
    for number in range(steps):
        model.zero_grad()
        losses.append(float(step(number)))
        adam.step(lr)
    return losses


def regression(model, batch: int, n_in: int = 8, n_out: int = 4, **settings) -> Step:
    """The step that learns what a fixed map, tanh(x teacher), does to normal inputs."""
    rng = np.random.default_rng(4)
    teacher = np.random.default_rng(5).standard_normal((n_in, n_out))

    def step(_):
        x = rng.standard_normal((batch, n_in))
        y, cache = model.forward(x, **settings)
        loss, dy = squared_error(y, np.tanh(x @ teacher))
        model.backward(dy, cache)
        return loss

    return step


def squared_error(y, target):
    """loss = mean over rows of |y - target|² / 2. Returns (loss, dy). Shapes: both (B, ..., D)."""
    rows = y.size // y.shape[-1]
    difference = y - target
    return float((difference * difference).sum()) / (2 * rows), difference / rows


def loss_of_words(model, ids, targets, *, pad_id=None) -> float:
    """The cross-entropy of model.forward(ids) with the targets; the gradients stay as they are."""
    return float(cross_entropy(model.forward(ids)[0], targets, pad_id=pad_id)[0])


def learn_words(model, ids, targets) -> float:
    """The same, and adds the gradients."""
    logits, cache = model.forward(ids)
    loss, loss_cache = cross_entropy(logits, targets)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    return float(loss)


def walks(rng, batch: int, length: int, n_words: int = 12):
    """Sentences of a made-up language in which either of two words may follow each word, never 0 (padding).

    Nobody can predict them with a loss under log 2 = 0.69 a word. Shapes: -> (B, length).
    """
    follows = np.random.default_rng(7).integers(1, n_words, (n_words, 2))
    follows[:, 1] += follows[:, 0] == follows[:, 1]  # two different ones
    follows = np.where(follows >= n_words, 1, follows)
    ids = np.empty((batch, length), np.int64)
    ids[:, 0] = rng.integers(1, n_words, batch)
    for t in range(1, length):
        ids[:, t] = follows[ids[:, t - 1], rng.integers(0, 2, batch)]
    return ids
