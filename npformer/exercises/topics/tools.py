"""What the declarations share: random arrays, and a layer with the learner's backward pass."""

import inspect

import numpy as np

from npformer.exercises.exercise import Gradients


class Borrowed:
    """A layer of the package whose backward is another function: backward(layer, dy, cache)."""

    def __init__(self, layer, backward):
        self.layer, self._backward = layer, backward
        self.forward = layer.forward

    def named_parameters(self):
        """The layer's own."""
        return self.layer.named_parameters()

    def backward(self, dy, cache):
        """What the learner wrote."""
        return self._backward(self.layer, dy, cache)


def output(returned):
    """What a forward pass returned, without its cache: a learner need not make one."""
    return returned[0] if isinstance(returned, tuple) and len(returned) == 2 else returned


def without_like(function):
    """The package's mask functions ask on which device to work, by an array; the learner's do not."""
    if "like" in inspect.signature(function).parameters:
        return lambda *args: function(*args, np.zeros(1))
    return function


def pair_trial(label, forward, name, *shapes, **settings):
    """A gradient check of the pair (forward, own.name) on normal inputs of these shapes."""

    def make(own, rng):
        inputs = [rng.standard_normal(s) if isinstance(s, tuple) else s for s in shapes]
        return ((forward, getattr(own, name)), *inputs)

    return Gradients(label, make, settings)


def layer_trial(label, build, name, *shapes, **settings):
    """A gradient check of the layer build(rng) with own.name as its backward."""

    def make(own, rng):
        layer = build(rng)
        inputs = [rng.standard_normal(s) if isinstance(s, tuple) else s for s in shapes]
        return (Borrowed(layer, getattr(own, name)), *inputs)

    return Gradients(label, make, settings)
