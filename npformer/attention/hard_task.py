"""A task for hard attention: of several places one is named, and what stands there is to be read.

compare() learns it in four ways: softly, by the score function with and without a baseline, straight through.
"""

from typing import Any, NamedTuple

import numpy as np

from npformer.attention.hard import HardAttention, MovingBaseline
from npformer.attention.luong import GlobalAttention
from npformer.attention.similarity import Similarity
from npformer.errors import UserError
from npformer.functional.hard import score_function
from npformer.functional.softmax import log_softmax, log_softmax_backward
from npformer.layers.linear import Linear
from npformer.module import Module
from npformer.optim import Adam

METHODS = ("soft", "hard", "hard, no baseline", "straight through")
PLACES, SYMBOLS = 6, 5  # S places with a name each, and on each one of C symbols


class Places(NamedTuple):
    """A batch of examples."""

    query: Any  # (B, 1, S) one-hot: the name that is asked for
    memory: Any  # (B, S, S + C) each place's name and its symbol, one-hot, side by side
    symbol: Any  # (B,) what stands at the place of that name


def make_places(n, rng, dtype=np.float64):
    """n examples: the names in a random order, a random symbol on each place, one name asked for."""
    names = np.argsort(rng.random((n, PLACES)))  # (B, S)
    symbols = rng.integers(0, SYMBOLS, (n, PLACES))  # (B, S)
    place = rng.integers(0, PLACES, n)  # (B,) where the answer is
    each = np.arange(n)
    query = np.eye(PLACES, dtype=dtype)[names[each, place]][:, None]
    memory = np.concatenate([np.eye(PLACES, dtype=dtype)[names], np.eye(SYMBOLS, dtype=dtype)[symbols]], -1)
    return Places(query, memory, symbols[each, place])


class ReaderCache(NamedTuple):
    """The cache of Reader."""

    attention: Any
    readout: Any
    log_probs: Any  # ([N,] B, 1, C)


class Reader(Module):
    """log p(y) = log softmax(context weight + bias), the context read from the memory by any attention.

    Shapes: query (B, 1, S), memory (B, S, S + C) -> log p ([N,] B, 1, C).
    """

    def __init__(self, method, *, rng, dtype=np.float64):
        if method not in METHODS:
            raise UserError(f"the method is {method!r}: choose one of {', '.join(METHODS)}")
        width = PLACES + SYMBOLS
        similarity = Similarity("general", PLACES, width, rng=rng, dtype=dtype)
        if method == "soft":
            self.attention: GlobalAttention | HardAttention = GlobalAttention(similarity)
        else:
            self.attention = HardAttention(similarity, straight_through=method == "straight through")
        self.readout = Linear(width, SYMBOLS, rng=rng, dtype=dtype)

    def forward(self, query, memory, **drawing):
        """drawing: train, rng and draws of HardAttention. Returns (log_probs, cache)."""
        context, attention = self.attention.forward(query, memory, **drawing)
        logits, readout = self.readout.forward(context)
        log_probs, _ = log_softmax(logits)
        return log_probs, ReaderCache(attention, readout, log_probs)

    def backward(self, dlog_probs, cache, **choices):
        """choices: dlog_prob and dentropy of HardAttention. Returns (dquery, dmemory)."""
        dlogits = log_softmax_backward(dlog_probs, cache.log_probs)
        dcontext = self.readout.backward(dlogits, cache.readout)
        return self.attention.backward(dcontext, cache.attention, **choices)


class Learned(NamedTuple):
    """What came of learning."""

    reader: Reader
    accuracy: float  # on new examples; hard attention reads the likeliest place there
    curve: Any  # (steps,) the mean log p(y) at each step


def learn(method, *, steps=200, batch=8, draws=1, lr=0.03, entropy_weight=0.0, seed=0):
    """Learn the task from nothing, by one of METHODS. The same arguments give the same result."""
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
        # loss = -mean log p(y), whose way through the context is ordinary
        dlog_probs = np.zeros_like(log_probs)
        dlog_probs[at_symbol] = -1 / log_likelihood.size
        reader.zero_grad()
        reader.backward(dlog_probs, cache, **choices)
        adam.step(lr)
        curve.append(log_likelihood.mean())
    return Learned(reader, accuracy(reader, np.random.default_rng(1_000_000 + seed)), np.array(curve))


def accuracy(reader, rng, n=1000):
    """The share of n new examples that are read rightly."""
    places = make_places(n, rng)
    log_probs, _ = reader.forward(places.query, places.memory)
    return float((log_probs[:, 0].argmax(-1) == places.symbol).mean())


class Compared(NamedTuple):
    """One method over several seeds."""

    accuracies: Any  # (seeds,)
    mean: float
    spread: float  # the standard deviation from seed to seed


def compare(*, seeds=5, methods=METHODS, **settings):
    """Learn by each method from several seeds; settings are those of learn.

    Returns a dict from method to Compared.
    """
    compared = {}
    for method in methods:
        accuracies = np.array([learn(method, seed=seed, **settings).accuracy for seed in range(seeds)])
        compared[method] = Compared(accuracies, float(accuracies.mean()), float(accuracies.std()))
    return compared
