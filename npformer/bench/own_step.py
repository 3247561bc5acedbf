"""npformer's training step, the same that `npformer train` makes."""

from collections.abc import Callable
from itertools import count

import numpy as np

from npformer.backend import Array, array_module, is_cupy, to_backend
from npformer.bench.setups import BETAS, EPS, LEARNING_RATE, SEED, Setup
from npformer.models.transformer import Transformer
from npformer.training.optimizer import Adam
from npformer.training.process import keep_freed_memory_in_process
from npformer.training.step import dropout_rngs, make_step
from npformer.training.workers import Workers


def own_step(setup: Setup, *, workers: int, backend: str) -> Callable[[], float]:
    """Return a function that makes one update of the model on the setup's batch and returns the loss.

    Each worker is a thread with its share of the batch, so BLAS should have one thread.

    Args:
        setup: The model and its batch.
        workers: The number of threads.
        backend: "numpy" or "cupy".
    """
    model = Transformer(setup.config(), rng=np.random.default_rng(SEED)).to(backend)
    keep_freed_memory_in_process()
    adam, threads = Adam(model, betas=BETAS, eps=EPS), Workers(model, workers)
    batch, number = setup.batch(), count(1)

    def step() -> float:
        rngs = dropout_rngs(SEED, next(number), 1)
        loss, _, _ = make_step(model, adam, [batch], rngs, LEARNING_RATE, workers=threads)
        wait_for(model.values)
        return loss

    return step


def wait_for(array: Array) -> None:
    """Wait until the GPU has finished. On the host there is nothing to wait for."""
    if is_cupy(array):
        array_module(array).cuda.Device().synchronize()


def gpu_peak(backend: str) -> int | None:
    """Return the peak of the bytes of arrays on the GPU; None if they are on the host."""
    if backend == "numpy":
        return None
    xp = array_module(to_backend(np.zeros(1), backend))
    return int(xp.get_default_memory_pool().total_bytes())
