"""One training step: forward pass, loss, backward pass, clipping and update. Evaluation of a model."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, generator_near, like
from npformer.data.loader import TrainingBatch
from npformer.kernels import cross_entropy, cross_entropy_backward, cross_entropy_in_place
from npformer.training.consistency import add_consistency, twice
from npformer.training.nan_checks import check_gradients, check_loss, check_parameters
from npformer.training.optimizer import Adam, clip_global_norm
from npformer.training.workers import Share, Workers


class Evaluation(NamedTuple):
    """The quality of a model's predictions on sentences outside the training set."""

    loss: float  # mean cross-entropy of a token, without label smoothing
    accuracy: float  # share of target tokens that get the highest probability, given the tokens before them
    tokens: int  # number of target tokens, with the end symbols and without padding
    objective: float  # the loss with label smoothing, which training minimizes, without a ponder cost

    @property
    def perplexity(self) -> float:
        """exp(loss), the effective number of equally probable tokens among which the model chooses."""
        return math.exp(min(self.loss, 700.0))  # exp(710) is over the largest float


def make_step(
    model: Any,
    optimizer: Adam,
    batches: Sequence[TrainingBatch],
    rngs: Sequence[np.random.Generator] | None,
    lr: float,
    clip_norm: float | None = None,
    workers: Workers | None = None,
    r_drop: float = 0.0,
) -> tuple[float, int, float]:
    """Compute the gradients of all batches and make one optimizer step.

    Args:
        model: The model to train.
        optimizer: The optimizer of the model.
        batches: The batches, whose gradients add up to that of one large batch.
        rngs: One generator for dropout for each batch; None trains without dropout.
        lr: The learning rate.
        clip_norm: The largest norm of the gradient, or None.
        workers: The workers of this model, which share each batch; by default, one worker.
        r_drop: The weight of consistency between two passes with different dropout (see consistency.py). With
            0, there is one pass.

    Returns:
        The loss, the number of target tokens, and the norm of the gradient before clipping.

    Raises:
        NotFiniteError: If a loss, a gradient or a new parameter is NaN or infinite.
        WorkerError: If another error stops a worker.
    """
    workers = workers or Workers(model)
    loss, tokens = loss_and_gradients(model, batches, rngs, workers, r_drop)
    norm = clip_global_norm(model.grads, clip_norm or np.inf)
    check_gradients(norm, model)
    optimizer.step(lr, workers.run_on_slices)
    check_parameters(model)
    return loss, tokens, norm


def loss_and_gradients(
    model: Any,
    batches: Sequence[TrainingBatch],
    rngs: Sequence[np.random.Generator] | None = None,
    workers: Workers | None = None,
    r_drop: float = 0.0,
) -> tuple[float, int]:
    """Compute the mean loss over all real tokens of the batches, and its gradients into model.grads.

    Several batches give the same result as one batch with all their sentences, because the number of tokens
    is the weight of each batch in the loss and in the gradient.

    Args:
        model: The model. Its gradients are set to zero first.
        batches: The batches of the step.
        rngs: One generator for dropout for each batch; None computes without dropout.
        workers: The workers of this model, which share each batch; by default, one worker.
        r_drop: The weight of consistency, as for make_step.

    Returns:
        The loss, and the number of target tokens.

    Raises:
        NotFiniteError: If the loss is NaN or infinite, before any gradient is computed from it.
    """
    workers = workers or Workers(model)
    tokens = sum(batch.tokens for batch in batches)

    def compute(share: Share) -> float:
        share.model.zero_grad()
        loss = 0.0
        for batch, rng in share.parts:
            loss += forward_and_backward(share.model, batch, tokens, rng, r_drop)
        return loss

    losses = workers.run(compute, workers.split(batches, rngs))
    return workers.sum_gradients(losses), tokens


def forward_and_backward(
    model: Any, batch: TrainingBatch, tokens: int, rng: np.random.Generator | None, r_drop: float = 0.0
) -> float:
    """Run the model forward and backward on one batch and accumulate the gradients.

    Args:
        model: The model, or a replica of it.
        batch: The batch, or a part of it.
        tokens: The number of target tokens in all batches of the step.
        rng: The generator for dropout; None computes without dropout.
        r_drop: The weight of consistency, as for make_step.

    Returns:
        The batch's part of the mean loss, without the consistency term.
    """
    config = model.config
    if r_drop:
        batch, tokens = twice(batch), 2 * tokens
    logits, targets, cache = _forward(model, batch, generator_near(rng, model.reference))
    mean, loss_cache = cross_entropy_in_place(
        logits, targets, smoothing=config.label_smoothing, pad_id=config.pad_id, tokens=tokens
    )
    settings: dict[str, Any] = {}
    if model.has_ponder_cost:
        settings["dponder"] = config.ponder_weight / tokens
        mean = mean + settings["dponder"] * model.ponder_cost(cache)
    loss = float(mean)  # converted only once, because the conversion waits for the GPU
    check_loss(loss, model, cache, logits)
    gradient = [cross_entropy_backward(1, loss_cache)]
    # The gradient of the logits is the largest array. backward gets the only reference to it, and frees it
    # early.
    del logits, loss_cache
    if r_drop:
        add_consistency(gradient[0], r_drop)
    model.backward(gradient.pop(), cache, **settings)
    return loss


def dropout_rngs(seed: int, step: int, batches: int) -> list[np.random.Generator]:
    """Return one generator for each batch of a step, for dropout. They depend on seed, step and batch only.

    The order of the sentences comes from default_rng([seed, epoch]), which is the same generator as
    default_rng([seed, epoch, 0]). The generators for dropout differ from it, because the third number of
    their seed is the step, which is never 0.

    Args:
        seed: The seed of the run.
        step: The number of the step, from 1.
        batches: The number of batches in the step.
    """
    return [np.random.default_rng([seed, batch, step]) for batch in range(batches)]


def evaluate(model: Any, batches: Iterable[TrainingBatch]) -> Evaluation:
    """Compute loss, accuracy and objective over all real tokens of the batches, without dropout.

    Raises:
        NotFiniteError: If a loss is NaN or infinite.
    """
    loss, objective, correct, tokens = 0.0, 0.0, 0, 0
    for batch in batches:
        mean, smoothed, n_correct = _score(model, batch)
        loss += mean * batch.tokens
        objective += smoothed * batch.tokens
        correct += n_correct
        tokens += batch.tokens
    n = max(1, tokens)
    return Evaluation(loss / n, correct / n, tokens, objective / n)


def _score(model: Any, batch: TrainingBatch) -> tuple[float, float, int]:
    """Return the mean loss of a batch without and with smoothing, and the number of correct predictions."""
    pad_id, smoothing = model.config.pad_id, model.config.label_smoothing
    logits, targets, cache = _forward(model, batch)
    correct = (logits.argmax(-1) == targets) & (targets != pad_id)
    loss, _ = cross_entropy(logits, targets, pad_id=pad_id)
    check_loss(float(loss), model, cache, logits)
    smoothed, _ = cross_entropy_in_place(logits, targets, smoothing=smoothing, pad_id=pad_id)
    return float(loss), float(smoothed), int(correct.sum())


def _forward(
    model: Any, batch: TrainingBatch, rng: np.random.Generator | None = None
) -> tuple[Array, Array, Any]:
    """Return (logits, targets, cache). A model that supports packing returns logits of real tokens only."""
    settings: dict[str, Any] = {} if rng is None else {"train": True, "rng": rng}
    targets = batch.target_out
    if model.supports_packing:
        settings["packed"] = True
        targets = targets[batch.inputs[-1] != model.config.pad_id]
    logits, cache = model.forward(*batch.inputs, **settings)
    return logits, like(targets, logits), cache
