"""Evaluation of a model on sentences outside the training set."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from npformer.data.loader import TrainingBatch
from npformer.errors import UserError
from npformer.kernels import cross_entropy, cross_entropy_in_place
from npformer.training.nan_checks import check_loss
from npformer.training.step import forward


class Evaluation(NamedTuple):
    """The quality of a model's predictions on sentences outside the training set."""

    loss: float  #: mean cross-entropy of a token, without label smoothing
    accuracy: float  #: share of target tokens that get the highest probability, given the tokens before them
    tokens: int  #: number of target tokens, with the end symbols and without padding
    objective: float  #: the loss with label smoothing, which training minimizes, without an auxiliary loss

    @property
    def perplexity(self) -> float:
        """exp(loss), the effective number of equally probable tokens among which the model chooses."""
        return math.exp(min(self.loss, 700.0))  # exp(710) is over the largest float


def evaluate(model: Any, batches: Iterable[TrainingBatch]) -> Evaluation:
    """Compute loss, accuracy and objective over all real tokens of the batches, without dropout.

    Raises:
        UserError: If the batches have no target token.
        NotFiniteError: If a loss is NaN or infinite.
    """
    loss, objective, correct, tokens = 0.0, 0.0, 0, 0
    for batch in batches:
        mean, smoothed, n_correct = _score(model, batch)
        loss += mean * batch.tokens
        objective += smoothed * batch.tokens
        correct += n_correct
        tokens += batch.tokens
    if tokens == 0:
        raise UserError("there is no token to evaluate the model on: give at least one batch with a target")
    return Evaluation(loss / tokens, correct / tokens, tokens, objective / tokens)


def _score(model: Any, batch: TrainingBatch) -> tuple[float, float, int]:
    """Return the mean loss of a batch without and with smoothing, and the number of correct predictions."""
    pad_id, smoothing = model.config.pad_id, model.config.label_smoothing
    logits, targets, cache = forward(model, batch)
    correct = (logits.argmax(-1) == targets) & (targets != pad_id)
    loss, _ = cross_entropy(logits, targets, pad_id=pad_id)
    check_loss(float(loss), model, cache, logits)
    smoothed, _ = cross_entropy_in_place(logits, targets, smoothing=smoothing, pad_id=pad_id)
    return float(loss), float(smoothed), int(correct.sum())
