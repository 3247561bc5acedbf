"""npformer's own training step, the one that `npformer train` makes."""

from collections.abc import Callable
from itertools import count

import numpy as np

from npformer.backend import array_module, is_cupy, to_backend
from npformer.bench.setups import BETAS, EPS, LEARNING_RATE, SEED, Setup
from npformer.optim import Adam
from npformer.training.step import dropout_rngs
from npformer.training.workers import Workers
from npformer.transformer import Transformer


def own_step(setup: Setup, *, workers: int, backend: str) -> Callable[[], float]:
    """One update of the model on the setup's batch: call it as often as you like. It returns the loss.

    Each worker is a thread with its share of the batch: BLAS should have one thread.
    """
    model = Transformer(setup.config(), rng=np.random.default_rng(SEED)).to(backend)
    adam, team = Adam(model, betas=BETAS, eps=EPS), Workers(model, workers)
    batch, number = setup.batch(), count(1)

    def step() -> float:
        rngs = dropout_rngs(SEED, next(number), 1)
        loss, _, _ = team.make_step(adam, [batch], rngs, LEARNING_RATE)
        wait_for(model.values)
        return loss

    return step


def wait_for(array) -> None:
    """Return when the GPU has finished; on the host all is done already."""
    if is_cupy(array):
        array_module(array).cuda.Device().synchronize()


def gpu_peak(backend: str) -> int | None:
    """The most bytes that arrays held on the GPU; None where they lie on the host."""
    if backend == "numpy":
        return None
    xp = array_module(to_backend(np.zeros(1), backend))
    return xp.get_default_memory_pool().total_bytes()
