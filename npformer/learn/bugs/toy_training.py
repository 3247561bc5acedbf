"""Small models and training loops for the specimens. Each training takes about a second at most."""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.nn.module import Module
from npformer.training.optimizer import Adam

Step = Callable[[int], float]  # takes a step's number, adds its gradients to the model, returns its loss


class Chain(Module):
    """A chain of layers. A pair (f, f_backward) counts as a layer."""

    def __init__(self, *layers: Any) -> None:
        self.layers = [Pair(*layer) if isinstance(layer, tuple) else layer for layer in layers]

    def forward(self, x: Array, **settings: Any) -> tuple[Any, Any]:
        """Return (y, cache). The settings go to every layer except pairs."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x) if isinstance(layer, Pair) else layer.forward(x, **settings)
            caches.append(cache)
        return x, tuple(caches)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx."""
        for layer, layer_cache in zip(self.layers[::-1], cache[::-1], strict=True):
            dy = layer.backward(dy, layer_cache)
        return dy


class Pair(Module):
    """A pair of functions as a layer."""

    def __init__(self, f: Any, f_backward: Any) -> None:
        self.forward, self.backward = f, f_backward


def descend(model: Any, step: Step, *, steps: int, lr: float) -> list[float]:
    """Train by gradient descent, value -= lr · gradient, and return the loss of each step.

    Args:
        model: The model.
        step: Adds the gradients of a step to the model and returns its loss.
        steps: The number of steps.
        lr: The learning rate.
    """
    losses = []
    for number in range(steps):
        model.zero_grad()
        losses.append(float(step(number)))
        for parameter in model.parameters():
            parameter.value -= lr * parameter.grad
    return losses


def adapt(model: Any, step: Step, *, steps: int, lr: float) -> list[float]:
    """Train with Adam and return the loss of each step.

    Args:
        model: The model.
        step: Adds the gradients of a step to the model and returns its loss.
        steps: The number of steps.
        lr: The learning rate.
    """
    adam, losses = Adam(model, betas=(0.9, 0.98)), []
    for number in range(steps):
        model.zero_grad()
        losses.append(float(step(number)))
        adam.step(lr)
    return losses


def regression(model: Any, batch: int, n_in: int = 8, n_out: int = 4, **settings: Any) -> Step:
    """Return the training step of a regression: the targets are tanh(x teacher) for normal inputs x.

    Args:
        model: The model.
        batch: The batch size.
        n_in: The width of the inputs.
        n_out: The width of the targets.
        settings: Keyword arguments of the model's forward.
    """
    rng = np.random.default_rng(4)
    teacher = np.random.default_rng(5).standard_normal((n_in, n_out))

    def step(_: int) -> float:
        x = rng.standard_normal((batch, n_in))
        y, cache = model.forward(x, **settings)
        loss, dy = squared_error(y, np.tanh(x @ teacher))
        model.backward(dy, cache)
        return loss

    return step


def squared_error(y: Array, target: Array) -> tuple[Any, Any]:
    """Return (loss, dy) for the mean of |y - target|² / 2 over all rows. Shapes: both (B, ..., D)."""
    rows = y.size // y.shape[-1]
    difference = y - target
    return float((difference * difference).sum()) / (2 * rows), difference / rows


def token_loss(model: Any, ids: Any, targets: Array, *, pad_id: Any = None) -> float:
    """Return the cross-entropy of model.forward(ids) with the targets, without gradients.

    Args:
        model: The model.
        ids: The input, as the model takes it.
        targets: The target tokens, (B, T).
        pad_id: The id of padding in the targets.
    """
    return float(cross_entropy(model.forward(ids)[0], targets, pad_id=pad_id)[0])


def learn_tokens(model: Any, ids: Any, targets: Array) -> float:
    """Return the cross-entropy of model.forward(ids) with the targets, and add its gradients.

    Args:
        model: The model.
        ids: The input, as the model takes it.
        targets: The target tokens, (B, T).
    """
    logits, cache = model.forward(ids)
    loss, loss_cache = cross_entropy(logits, targets)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    return float(loss)


def walks(rng: np.random.Generator, batch: int, length: int, vocab_size: int = 12) -> Any:
    """Return sentences, (batch, length), of a made-up language in which one of two tokens follows each token.

    No model can predict them with a loss below log 2 = 0.69 per token. Token 0 (padding) does not occur.

    Args:
        rng: The generator.
        batch: The number of sentences.
        length: The length of each sentence.
        vocab_size: The number of tokens.
    """
    follows = np.random.default_rng(7).integers(1, vocab_size, (vocab_size, 2))
    follows[:, 1] += follows[:, 0] == follows[:, 1]  # two different ones
    follows = np.where(follows >= vocab_size, 1, follows)
    ids = np.empty((batch, length), np.int64)
    ids[:, 0] = rng.integers(1, vocab_size, batch)
    for t in range(1, length):
        ids[:, t] = follows[ids[:, t - 1], rng.integers(0, 2, batch)]
    return ids
