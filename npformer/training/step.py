"""The mathematics of one step: the loss of some batches with its gradients, and an evaluation."""

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import generator_near, like
from npformer.data.batches import Batch
from npformer.data.sentences import SentenceBatch
from npformer.kernels import cross_entropy, cross_entropy_backward
from npformer.optim import Adam, clip_global_norm
from npformer.training.finite import check_gradients, check_loss, check_parameters

AnyBatch = Batch | SentenceBatch


class Evaluation(NamedTuple):
    """How well a model predicts words that it does not learn from."""

    loss: float  # mean cross-entropy of a token, without label smoothing
    accuracy: float  # share of tokens whose likeliest word is the right one
    tokens: int
    objective: float  # what training lowers: the loss with label smoothing; the best model has the lowest

    @property
    def perplexity(self) -> float:
        """exp(loss): among how many words, all as likely, the model is undecided."""
        return math.exp(min(self.loss, 700.0))  # exp(710) is over the largest float


def dropout_rngs(seed: int, step: int, batches: int) -> list[np.random.Generator]:
    """A generator for the dropout of each batch of a step: a function of seed and step, with no state.

    The step stands third and is never 0: default_rng([seed, epoch]), which orders the sentences, is
    the same generator as default_rng([seed, epoch, 0]), and must not be one of these.
    """
    return [np.random.default_rng([seed, batch, step]) for batch in range(batches)]


def make_step(
    model: Any,
    adam: Adam,
    batches: Sequence[AnyBatch],
    rngs: Sequence[np.random.Generator] | None,
    lr: float,
    clip_norm: float | None = None,
) -> tuple[float, int, float]:
    """One update from the gradients of all the batches. Returns (loss, tokens, the gradients' length).

    Errors: NotFiniteError for a loss, a gradient or a new parameter that is NaN or infinite.
    """
    loss, tokens = loss_and_gradients(model, batches, rngs)
    norm = clip_global_norm(model.grads, clip_norm or np.inf)
    check_gradients(norm, model)
    adam.step(lr)
    check_parameters(model)
    return loss, tokens, norm


def loss_and_gradients(
    model: Any, batches: Sequence[AnyBatch], rngs: Sequence[np.random.Generator] | None = None
) -> tuple[float, int]:
    """The mean loss over all real tokens of the batches, and their number; the gradients of that mean.

    Several batches give what one with all their sentences would: each counts by its tokens, in the
    loss and in the gradient alike. rngs: one generator a batch, for dropout; none, and nothing is dropped.
    Errors: NotFiniteError for a loss that is NaN or infinite, before it reaches any gradient.
    """
    total = sum(batch.tokens for batch in batches)
    model.zero_grad()
    loss = 0.0
    for batch, rng in zip(batches, rngs or repeat(None, len(batches)), strict=True):
        loss += add_gradients(model, batch, total, rng)
    return loss, total


def add_gradients(model: Any, batch: AnyBatch, total: int, rng: np.random.Generator | None) -> float:
    """Add the gradients of the batch's part of a mean over `total` tokens; returns that part of the loss."""
    config = model.config
    logits, targets, cache = _forward(model, batch, generator_near(rng, model.values))
    loss, loss_cache = cross_entropy(
        logits,
        targets,
        smoothing=config.label_smoothing,
        pad_id=config.pad_id,
        tokens=total,
        overwrite=True,
    )
    loss = float(loss)  # once: on a GPU this waits
    check_loss(loss, model, cache, logits)
    gradient = [cross_entropy_backward(1, loss_cache)]
    del logits, loss_cache  # the largest array there is is handed on whole, and freed once it is used
    model.backward(gradient.pop(), cache)
    return loss


def _forward(model: Any, batch: AnyBatch, rng: np.random.Generator | None = None) -> tuple[Any, Any, Any]:
    """Returns (logits, targets, cache); logits and targets of the words alone, where the model packs."""
    settings: dict[str, Any] = {} if rng is None else {"train": True, "rng": rng}
    targets = batch.target_out
    if model.packs:
        settings["packed"] = True
        targets = targets[batch.inputs[-1] != model.config.pad_id]
    logits, cache = model.forward(*batch.inputs, **settings)
    return logits, like(targets, logits), cache


def evaluate(model: Any, batches: Iterable[AnyBatch]) -> Evaluation:
    """Loss, accuracy and objective over all real tokens of the batches, without dropout.

    Errors: NotFiniteError for a loss that is NaN or infinite.
    """
    loss, objective, right, tokens = 0.0, 0.0, 0, 0
    for batch in batches:
        mean, smoothed, hits = _score(model, batch)
        loss += mean * batch.tokens
        objective += smoothed * batch.tokens
        right += hits
        tokens += batch.tokens
    n = max(1, tokens)
    return Evaluation(loss / n, right / n, tokens, objective / n)


def _score(model: Any, batch: AnyBatch) -> tuple[float, float, int]:
    """The mean loss of a batch without and with smoothing, and how many tokens were predicted right."""
    pad_id, smoothing = model.config.pad_id, model.config.label_smoothing
    logits, targets, cache = _forward(model, batch)
    hits = (logits.argmax(-1) == targets) & (targets != pad_id)
    loss, _ = cross_entropy(logits, targets, pad_id=pad_id)
    check_loss(float(loss), model, cache, logits)
    smoothed, _ = cross_entropy(logits, targets, smoothing=smoothing, pad_id=pad_id, overwrite=True)
    return float(loss), float(smoothed), int(hits.sum())
