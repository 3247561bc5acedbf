"""One training step: forward pass, loss, backward pass, clipping and update.

Several workers (threads) can share a batch. Each of them computes on a replica of the model, which has the
same parameters in memory and its own gradients, so that no two threads add to the same array. The gradients
of all replicas are then added. A single worker computes on the model itself.

What some runs add stands beside it: workers and processes in workers.py and ranks.py, R-Drop in
consistency.py, the search for the origin of a NaN in nan_checks.py.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.backend import Array, generator_near, like
from npformer.data.loader import TrainingBatch
from npformer.errors import UserError
from npformer.kernels import cross_entropy_backward, cross_entropy_in_place
from npformer.training.consistency import add_consistency, twice
from npformer.training.nan_checks import check_gradients, check_loss, check_parameters
from npformer.training.optimizer import Adam, clip_global_norm
from npformer.training.workers import Share, Workers


def make_step(
    model: Any,
    optimizer: Adam | None,
    batches: Sequence[TrainingBatch],
    rngs: Sequence[np.random.Generator] | None,
    lr: float,
    clip_norm: float | None = None,
    workers: Workers | None = None,
    r_drop: float = 0.0,
) -> tuple[float, int, float]:
    """Compute the gradients of all batches and make one optimizer step.

    Several batches give the same result as one batch with all their sentences, because the number of tokens
    is the weight of each batch in the loss and in the gradient.

    Args:
        model: The model to train. Its gradients are set to zero first.
        optimizer: The optimizer of the model, or None to compute the gradients only.
        batches: The batches, whose gradients add up to that of one large batch.
        rngs: One generator for dropout for each batch; None trains without dropout.
        lr: The learning rate.
        clip_norm: The largest norm of the gradient, or None.
        workers: The workers of this model, which share each batch; by default, one worker.
        r_drop: The weight of consistency between two passes with different dropout (see consistency.py). With
            0, there is one pass.

    Returns:
        The mean loss over all target tokens, without the consistency term; the number of target tokens; and
        the norm of the gradient before clipping, or NaN without an optimizer.

    Raises:
        UserError: If the batches have no target token.
        NotFiniteError: If a loss, a gradient or a new parameter is NaN or infinite. No gradient is computed
            from such a loss.
        WorkerError: If another error stops a worker.
    """
    workers = workers or Workers(model)
    tokens = sum(batch.tokens for batch in batches)
    if tokens == 0:
        raise UserError("there is no token to learn from: give at least one batch with a target")

    def compute_share(share: Share) -> float:
        """Compute the gradients of one worker's share of the batches, and return its part of the loss."""
        share.replica.zero_grad()
        loss = 0.0
        for batch, rng in share.parts:
            loss += forward_and_backward(share.replica, batch, rng, tokens, r_drop)
        return loss

    # forward, loss and backward: the gradients of all workers are added in model.grads
    loss = workers.sum_over(compute_share, batches, rngs)
    if optimizer is None:
        return loss, tokens, math.nan
    # clip
    norm = clip_global_norm(model.grads, np.inf if clip_norm is None else clip_norm)
    check_gradients(norm, model)
    # update
    optimizer.step(lr, workers.run_on_slices)
    check_parameters(model)
    return loss, tokens, norm


def forward_and_backward(
    replica: Any, batch: TrainingBatch, rng: np.random.Generator | None, tokens: int, r_drop: float
) -> float:
    """Add the gradients of a batch to those of a replica.

    Args:
        replica: The model, or a replica of it.
        batch: The batch, or a part of it.
        rng: The generator for dropout; None computes without dropout.
        tokens: The number of target tokens in all batches of the step, over which the loss is a mean.
        r_drop: The weight of consistency, as for make_step.

    Returns:
        The part of the loss that comes from this batch.
    """
    config, n_predictions = replica.config, 2 * tokens if r_drop else tokens
    # forward
    batch = twice(batch) if r_drop else batch
    rng = generator_near(rng, replica.reference)  # rng itself, or a generator on the GPU of the model
    logits, targets, cache = forward(replica, batch, rng)
    # loss
    mean, loss_cache = cross_entropy_in_place(
        logits, targets, smoothing=config.label_smoothing, pad_id=config.pad_id, tokens=n_predictions
    )
    added, auxiliary = auxiliary_loss(replica, cache, n_predictions)
    loss = float(mean + added)  # converted only once, because the conversion waits for the GPU
    check_loss(loss, replica, cache, logits)
    # backward
    dlogits = [cross_entropy_backward(1, loss_cache)]
    if r_drop:
        add_consistency(dlogits[0], r_drop)
    # the gradient of the logits is the largest array: backward gets the only reference, and frees it
    del logits, loss_cache
    replica.backward(dlogits.pop(), cache, **auxiliary)
    return loss


def forward(
    model: Any, batch: TrainingBatch, rng: np.random.Generator | None = None
) -> tuple[Array, Array, Any]:
    """Run the model forward on a batch. A model that supports packing computes logits of real tokens only.

    Args:
        model: The model.
        batch: The batch.
        rng: The generator for dropout; None computes without dropout.

    Returns:
        The logits, the targets in the same order, and the cache.
    """
    settings: dict[str, Any] = {} if rng is None else {"train": True, "rng": rng}
    targets = batch.target_out
    if model.supports_packing:
        settings["packed"] = True
        targets = targets[batch.inputs[-1] != model.config.pad_id]
    logits, cache = model.forward(*batch.inputs, **settings)
    return logits, like(targets, logits), cache  # like moves the targets to the device of the logits


def auxiliary_loss(model: Any, cache: Any, tokens: int) -> tuple[Any, dict[str, float]]:
    """Return the term that some models add to the loss, and the argument of their backward pass.

    A Universal Transformer adds its ponder cost, and a mixture of experts the balance of its experts. For the
    other models, the term is 0, and there is no argument.

    Args:
        model: The model.
        cache: The cache of its forward pass.
        tokens: The number of predictions over which the loss is a mean.
    """
    if not model.has_auxiliary_loss:
        return 0.0, {}
    dauxiliary = 1 / tokens
    return dauxiliary * model.auxiliary_loss(cache), {"dauxiliary": dauxiliary}


def loss_and_gradients(
    model: Any,
    batches: Sequence[TrainingBatch],
    rngs: Sequence[np.random.Generator] | None = None,
    workers: Workers | None = None,
    r_drop: float = 0.0,
) -> tuple[float, int]:
    """Compute the loss and its gradients into model.grads as make_step does, without the update.

    Args:
        model: The model. Its gradients are set to zero first.
        batches: The batches of the step.
        rngs: One generator for dropout for each batch; None computes without dropout.
        workers: The workers of this model, which share each batch; by default, one worker.
        r_drop: The weight of consistency, as for make_step.

    Returns:
        The loss, and the number of target tokens.

    Raises:
        UserError: If the batches have no target token.
        NotFiniteError: If the loss is NaN or infinite, before any gradient is computed from it.
    """
    loss, tokens, _ = make_step(model, None, batches, rngs, 0.0, None, workers, r_drop)
    return loss, tokens


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
