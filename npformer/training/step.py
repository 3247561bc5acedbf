"""The mathematics of one step: the loss of some batches with its gradients, and an evaluation."""

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import like
from npformer.data.batches import Batch
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.training.finite import check_loss


class Evaluation(NamedTuple):
    """How well a model predicts words that it does not learn from."""

    loss: float  # mean cross-entropy of a token, without label smoothing
    accuracy: float  # share of tokens whose likeliest word is the right one
    tokens: int

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


def loss_and_gradients(
    model: Any, batches: Sequence[Batch], rngs: Sequence[np.random.Generator] | None = None
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
        # loss = sum over batches of share · mean
        share = batch.tokens / total
        loss += share * _add_gradients(model, batch, share, rng)
    return loss, total


def _add_gradients(model: Any, batch: Batch, share: float, rng: np.random.Generator | None) -> float:
    """Add the gradients of share · mean loss of the batch; returns the mean. The cache ends with the call."""
    config = model.config
    logits, cache = model.forward(batch.source, batch.target_in, train=True, rng=rng)
    targets = like(batch.target_out, logits)
    loss, loss_cache = cross_entropy(logits, targets, smoothing=config.label_smoothing, pad_id=config.pad_id)
    check_loss(float(loss), model, cache, logits)
    model.backward(cross_entropy_backward(share, loss_cache), cache)
    return float(loss)


def evaluate(model: Any, batches: Iterable[Batch]) -> Evaluation:
    """Loss and accuracy over all real tokens of the batches, without dropout and label smoothing.

    Errors: NotFiniteError for a loss that is NaN or infinite.
    """
    loss, right, tokens = 0.0, 0, 0
    for batch in batches:
        mean, hits = _score(model, batch)
        loss += mean * batch.tokens
        right += hits
        tokens += batch.tokens
    return Evaluation(loss / max(1, tokens), right / max(1, tokens), tokens)


def _score(model: Any, batch: Batch) -> tuple[float, int]:
    """The mean loss of a batch, and how many of its tokens were predicted right."""
    pad_id = model.config.pad_id
    logits, cache = model.forward(batch.source, batch.target_in)
    targets = like(batch.target_out, logits)
    loss, _ = cross_entropy(logits, targets, pad_id=pad_id)
    check_loss(float(loss), model, cache, logits)
    hits = (logits.argmax(-1) == targets) & (targets != pad_id)
    return float(loss), int(hits.sum())
