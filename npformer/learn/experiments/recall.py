"""Associative recall: linear attention, the delta rules and softmax attention remember pairs of tokens.

A model reads pairs of a key and a value, and is then asked for the value of each key. It has tables of
vectors, one attention, whose keys have the width D_KEY, and a linear layer for the logits. In the task "new
keys" all keys of a row differ. In the task "keys again" a row has at most REPEATED different keys, and the
last value of a key is the right one. In the task "last keys" all keys differ again, and only the LAST ones
are asked for, so that a memory may forget the others.

Source: Schlag et al. 2021, "Linear transformers are secretly fast weight programmers", section 6.1.
"""

import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.learn.experiments.measured_runs import MEAN_OF, Result, Results, Trial
from npformer.nn import Embedding, Linear
from npformer.nn.module import Module, Parameter
from npformer.training.optimizer import Adam, cosine

MEASURED = Path(__file__).with_name("recall.json")  # the results that ship
VOCAB, D_KEY, D_VALUE = 64, 16, 16  # the numbers of keys and of values, and the widths of their vectors
REPEATED = 8  # the different keys of a row in the task "keys again"
PAIRS = (4, 8, 16, 24, 32, 48, 64)  # the numbers of pairs that are tested
LAST = 8  # the keys that are asked for in the task "last keys"
STEPS, BATCH, LEARNING_RATE = 400, 32, 0.02
SCALE = 20.0  # of the scores of softmax attention, whose vectors have length 1
SEEDS = (0, 1, 2)
RULES, TASKS = ("linear", "delta", "softmax"), ("new keys", "keys again")
ALL_RULES, ALL_TASKS = (*RULES, "gated delta"), (*TASKS, "last keys")


class Rows(NamedTuple):
    """Pairs of tokens, and the questions about them."""

    keys: Array  # (B, N)
    values: Array  # (B, N)
    questions: Array  # (B, M) keys
    answers: Array  # (B, M) values


def draw_rows(task: str, rng: np.random.Generator, rows: int, pairs: int) -> Rows:
    """Draw pairs, and ask for each key once, or for the last ones only.

    Args:
        task: One of ALL_TASKS.
        rng: The generator.
        rows: The number B of rows.
        pairs: The number N of pairs.
    """
    order = rng.permuted(np.tile(np.arange(VOCAB), (rows, 1)), axis=1)  # (B, V) different keys
    values = rng.integers(0, VOCAB, (rows, pairs))
    if task != "keys again":
        first = 0 if task == "new keys" else max(0, pairs - LAST)
        return Rows(order[:, :pairs], values, order[:, first:pairs], values[:, first:])
    places = rng.integers(0, min(REPEATED, pairs), (rows, pairs))  # which of the keys
    places[:, : min(REPEATED, pairs)] = np.arange(min(REPEATED, pairs))  # each at least once
    answers = np.empty((rows, min(REPEATED, pairs)), int)
    for place in range(answers.shape[1]):
        last = pairs - 1 - np.argmax(places[:, ::-1] == place, axis=1)  # (B,)
        answers[:, place] = values[np.arange(rows), last]
    keys = np.take_along_axis(order, places, 1)
    return Rows(keys, values, order[:, : answers.shape[1]], answers)


class RecallCache(NamedTuple):
    """The cache of Recall."""

    keys: Any  # the caches of the tables
    questions: Any
    values: Any
    units: Any  # of the division of the keys and of the questions by their lengths
    attention: Any
    output: Any


class Recall(Module):
    """Tables of keys and values, and one attention between them.

    Args:
        rule: One of ALL_RULES.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(self, rule: str, *, rng: np.random.Generator, dtype: Any = np.float32) -> None:
        self.rule = rule
        self.keys = Embedding(VOCAB, D_KEY, rng=rng, dtype=dtype)
        self.values_table = Embedding(VOCAB, D_VALUE, rng=rng, dtype=dtype)
        self.output = Linear(D_VALUE, VOCAB, bias=False, rng=rng, dtype=dtype)
        self.gate = Parameter(np.zeros(1, dtype))  # of the delta rule: beta = sigmoid(gate), for all pairs
        if rule == "gated delta":
            self.decay = Parameter(np.full(1, -4, dtype))  # log α = -exp(decay), for all pairs
        self.unit = np.full(D_KEY, D_KEY**-0.5, dtype)  # the gain of a norm that gives vectors the length 1
        self.flatten()

    def forward(self, rows: Rows) -> tuple[Array, RecallCache]:
        """Return the logits of the answers, of shape (B, M, V), and the cache."""
        k, keys_cache = self.keys.forward(rows.keys)  # (B, N, K)
        q, questions_cache = self.keys.forward(rows.questions)  # (B, M, K)
        v, values_cache = self.values_table.forward(rows.values)  # (B, N, L)
        (k, k_unit), (q, q_unit) = F.rms_norm(k, self.unit), F.rms_norm(q, self.unit)
        attention_cache: Any
        if self.rule == "softmax":
            y, attention_cache = F.attention(q, k, v, scale=SCALE)  # (B, M, L)
        else:
            # the pairs write, then the questions read: a key of 0 writes nothing
            k, q = _padded(k, 0, q.shape[1]), _padded(q, k.shape[1], 0)
            v = _padded(v, 0, rows.questions.shape[1])
            if self.rule == "linear":
                y, attention_cache = F.linear_attention(q, k, v)
            else:
                beta, _ = F.sigmoid(np.broadcast_to(self.gate.value, k.shape[:2]))
                if self.rule == "delta":
                    y, attention_cache = F.delta_rule(q, k, v, beta)
                else:
                    # questions write nothing, and the memory does not decay while they read
                    writes = np.arange(k.shape[1]) < rows.keys.shape[1]
                    log_decay = -np.exp(self.decay.value) * np.broadcast_to(writes, beta.shape)
                    y, attention_cache = F.gated_delta_rule(q, k, v, beta, log_decay)
            y = y[:, rows.keys.shape[1] :]
        logits, output_cache = self.output.forward(y)
        units = k_unit, q_unit
        return logits, RecallCache(
            keys_cache, questions_cache, values_cache, units, attention_cache, output_cache
        )

    def backward(self, dlogits: Array, cache: RecallCache) -> None:
        """Accumulate the gradients of all parameters. Shapes: dlogits (B, M, V)."""
        dy = self.output.backward(dlogits, cache.output)
        n_pairs = cache.keys.ids.shape[1]
        if self.rule == "softmax":
            dq, dk, dv = F.attention_backward(dy, cache.attention)
        else:
            dy = _padded(dy, n_pairs, 0)
            if self.rule == "linear":
                dq, dk, dv = F.linear_attention_backward(dy, cache.attention)
            else:
                if self.rule == "delta":
                    dq, dk, dv, dbeta = F.delta_rule_backward(dy, cache.attention)
                else:
                    dq, dk, dv, dbeta, dlog = F.gated_delta_rule_backward(dy, cache.attention)
                    # log α = -exp(decay), and 0 at the questions
                    self.decay.accumulate((dlog * cache.attention.log_decay).sum(keepdims=True)[0])
                # beta = sigmoid(gate), the same for all pairs
                self.gate.accumulate(F.sigmoid_backward(dbeta, cache.attention.beta).sum(keepdims=True)[0])
            dq, dk, dv = dq[:, n_pairs:], dk[:, :n_pairs], dv[:, :n_pairs]
        dk, _ = F.rms_norm_backward(dk, cache.units[0])
        dq, _ = F.rms_norm_backward(dq, cache.units[1])
        self.values_table.backward(dv, cache.values)
        self.keys.backward(dk, cache.keys)
        self.keys.backward(dq, cache.questions)


def _padded(x: Array, before: int, after: int) -> Array:
    """Return an array (B, T, K) with zeros for tokens before and after."""
    return np.pad(x, ((0, 0), (before, after), (0, 0)))


def train_model(trial: Trial) -> tuple[Recall, Result]:
    """Train a new model with rows of different lengths, and return it with the result.

    The measure "accuracy" of the result has the share of right answers for each number of PAIRS. The loss of
    the result is the mean of the last MEAN_OF training steps, whose rows are new as well.

    Args:
        trial: The arguments of the training. The name of its model is a rule and a task, such as
            "delta, new keys".
    """
    start = time.process_time()
    rule, task = trial.model.split(", ")
    model = Recall(rule, rng=np.random.default_rng(trial.seed))
    adam, rng = Adam(model, betas=(0.9, 0.99), eps=1e-8), np.random.default_rng([trial.seed, 1])
    schedule, losses = cosine(trial.learning_rate, trial.steps + 1, 20), []
    for step in range(1, trial.steps + 1):
        rows = draw_rows(task, rng, BATCH, int(rng.choice(PAIRS)))
        logits, cache = model.forward(rows)
        loss, loss_cache = cross_entropy(logits, rows.answers)
        model.zero_grad()
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        adam.step(schedule(step))
        losses.append(float(loss))
    accuracy = []
    for pairs in PAIRS:
        rows = draw_rows(task, np.random.default_rng([trial.seed, 2]), 64, pairs)
        accuracy.append(round(float((model.forward(rows)[0].argmax(-1) == rows.answers).mean()), 4))
    curve = np.reshape(losses[: len(losses) // MEAN_OF * MEAN_OF], (-1, MEAN_OF)).mean(1).round(4).tolist()
    seconds = round(time.process_time() - start, 1)
    final = round(float(np.mean(losses[-MEAN_OF:])), 5)
    return model, Result(*trial, model.count_parameters(), final, curve, seconds, {"accuracy": accuracy})


def measure(path: str | PathLike[str], report: Callable[[Result], None] | None = None) -> list[Result]:
    """Train a model with every rule, task and seed, as far as the file does not hold their results.

    Args:
        path: The file with the results.
        report: A function that is called with each new result.

    Returns:
        The results.

    Raises:
        UserError: If the file cannot be read or written, or holds something else.
    """
    results = Results(path, report)
    names = [f"{rule}, {task}" for task in ALL_TASKS for rule in ALL_RULES]
    trials = [Trial(name, LEARNING_RATE, STEPS, seed) for name in names for seed in SEEDS]
    return [results.measure(trial, lambda trial: train_model(trial)[1]) for trial in trials]
