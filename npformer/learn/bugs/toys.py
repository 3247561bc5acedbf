"""Small models and trainings for the specimens. Each training takes about a second at most."""

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
        self.layers: list[Any] = [Pair(*each) if isinstance(each, tuple) else each for each in layers]

    def forward(self, x: Array, **settings: Any) -> tuple[Any, Any]:
        """Return (y, cache). The settings go to the residual layers only."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, **settings) if isinstance(layer, Residual) else layer.forward(x)
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


class Residual(Module):
    """A layer with a residual connection, y = x + layer(x)."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def forward(self, x: Array, **settings: Any) -> tuple[Any, Any]:
        """Return (y, cache)."""
        h, cache = self.layer.forward(x, **settings)
        return x + h, cache

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx."""
        return dy + self.layer.backward(dy, cache)


class Descent:
    """Gradient descent, value -= lr · gradient."""

    def __init__(self, model: Module) -> None:
        self.parameters = model.parameters()

    def step(self, lr: float) -> None:
        """Change every parameter."""
        for parameter in self.parameters:
            parameter.value -= lr * parameter.grad


def learn(model: Any, step: Step, *, steps: int, lr: float, optimizer: Any = None) -> list[float]:
    """Train a model, and return the loss of each step.

    Args:
        model: The model.
        step: Adds the gradients of a step to the model and returns its loss.
        steps: The number of steps.
        lr: The learning rate.
        optimizer: The optimizer, with a method step(lr). The default is Adam.
    """
    optimizer, losses = optimizer or Adam(model, betas=(0.9, 0.98)), []
    for number in range(steps):
        model.zero_grad()
        losses.append(float(step(number)))
        optimizer.step(lr)
    return losses


def regression(model: Any, batch: int) -> Step:
    """Return the training step of a regression: the targets are tanh(x teacher) for normal inputs x."""
    rng, teacher = np.random.default_rng(4), np.random.default_rng(5).standard_normal((8, 4))

    def step(_: int) -> float:
        x = rng.standard_normal((batch, 8))
        return learn_numbers(model, x, np.tanh(x @ teacher))

    return step


def learn_numbers(model: Any, x: Array, target: Array, **settings: Any) -> float:
    """Return the squared error of model.forward(x), and add its gradients.

    Args:
        model: The model.
        x: The inputs, (B, I).
        target: The targets, (B, O).
        settings: Keyword arguments of the model's forward.
    """
    y, cache = model.forward(x, **settings)
    loss, dy = squared_error(y, target)
    model.backward(dy, cache)
    return loss


def squared_error(y: Array, target: Array) -> tuple[Any, Any]:
    """Return (loss, dy) for the mean of |y - target|² / 2 over all rows. Shapes: both (B, ..., D)."""
    rows = y.size // y.shape[-1]
    difference = y - target
    return float((difference * difference).sum()) / (2 * rows), difference / rows


def token_loss(model: Any, ids: Any, targets: Array, *, pad_id: Any = None, **settings: Any) -> float:
    """Return the cross-entropy of model.forward(ids) with the targets, without gradients.

    Args:
        model: The model.
        ids: The input, as the model takes it.
        targets: The target tokens, (B, T).
        pad_id: The id of padding in the targets.
        settings: Keyword arguments of the model's forward.
    """
    return float(cross_entropy(model.forward(ids, **settings)[0], targets, pad_id=pad_id)[0])


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


def draw_gradients(model: Any, seed: int) -> None:
    """Set the gradients of all parameters to random numbers."""
    rng = np.random.default_rng(seed)
    for parameter in model.parameters():
        parameter.grad[...] = rng.standard_normal(parameter.shape)


def cut(ids: Array) -> tuple[Any, Any]:
    """Return (ids, targets) for the prediction of the next token."""
    return ids[:, :-1], ids[:, 1:]


def backwards(rng: np.random.Generator, batch: int, length: int, *, lowest: int = 0) -> tuple[Any, Any]:
    """Return random sentences and their targets, the sentences reversed, both (batch, length).

    Args:
        rng: The generator.
        batch: The number of sentences.
        length: The length of each sentence.
        lowest: The lowest token. The highest one is 11.
    """
    ids = rng.integers(lowest, 12, (batch, length))
    return ids, ids[:, ::-1]


def walks(rng: np.random.Generator, batch: int, length: int) -> Any:
    """Return sentences, (batch, length), of a made-up language in which one of two tokens follows each token.

    No model can predict them with a loss below log 2 = 0.69 per token. Token 0 (padding) does not occur.

    Args:
        rng: The generator.
        batch: The number of sentences.
        length: The length of each sentence.
    """
    follows = np.random.default_rng(7).integers(1, 12, (12, 2))
    follows[:, 1] += follows[:, 0] == follows[:, 1]  # two different ones
    follows = np.where(follows >= 12, 1, follows)
    ids = np.empty((batch, length), np.int64)
    ids[:, 0] = rng.integers(1, 12, batch)
    for t in range(1, length):
        ids[:, t] = follows[ids[:, t - 1], rng.integers(0, 2, batch)]
    return ids
