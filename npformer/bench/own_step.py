"""npformer's training step, the same that `npformer train` makes."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from npformer.backend import Array, array_module, is_cupy, to_backend
from npformer.bench.setups import LEARNING_RATE, AnySetup
from npformer.training.process import keep_freed_memory_in_process
from npformer.training.step import make_step
from npformer.training.workers import Workers


def own_step(setup: AnySetup, *, workers: int, backend: str) -> Callable[[], float]:
    """Return a function that makes one update of the model on the setup's batch and returns the loss.

    Each worker is a thread with its share of the batch, so BLAS should have one thread.

    Args:
        setup: The model and its batch.
        workers: The number of threads.
        backend: "numpy" or "cupy".
    """
    model: Any = setup.build().to(backend)
    keep_freed_memory_in_process()
    adam, threads = setup.optimizer(model), Workers(model, workers)
    batch, number = setup.batch(), count(1)

    def step() -> float:
        rngs = setup.rngs(next(number))
        loss, _, _ = make_step(model, adam, [batch], rngs, LEARNING_RATE, setup.clip_norm, threads)
        wait_for(model.values)
        return loss

    return step


def wait_for(array: Array) -> None:
    """Wait until the GPU has finished. On the host there is nothing to wait for."""
    if is_cupy(array):
        array_module(array).cuda.Device().synchronize()


def gpu_peak(backend: str) -> int | None:
    """Return the peak of the bytes that CuPy holds on the GPU; None if the arrays are on the host."""
    if backend == "numpy":
        return None
    xp = array_module(to_backend(np.zeros(1), backend))
    return int(xp.get_default_memory_pool().total_bytes())
