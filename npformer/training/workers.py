"""Data parallelism: each batch is split among threads, each with a replica of the model and one BLAS thread.

NumPy releases the interpreter's lock while it computes, so two threads keep two cores busy, also
between the matrix products, where the threads of BLAS would be idle. All replicas read the same parameter
values and have gradients of their own. The gradients are added in a fixed order, so the same seed gives the
same bits. If mpirun started several processes, the batch is split over the workers of all of them.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_info

from npformer.data.loader import TrainingBatch
from npformer.errors import UserError
from npformer.storage.checkpoint import Checkpoint
from npformer.training.ranks import Ranks, share_of
from npformer.validation import require_count

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerError(UserError):
    """An error in a worker that ends the run, such as a lack of memory."""


class Share(NamedTuple):
    """The part of a step's batches that one worker computes."""

    replica: Any  # worker 0 has the model itself
    parts: list[tuple[TrainingBatch, np.random.Generator | None]]  # each part with its generator for dropout


class Workers:
    """Threads that share each batch of a step. Worker 0 has the model itself, the others have replicas.

    A single worker runs in the calling thread and computes whole batches.

    Args:
        model: The model to train.
        count: The number of workers in this process.
        ranks: The processes that share each batch, with `count` workers each; only this one by default.

    Raises:
        UserError: If the number of workers is below 1.
    """

    def __init__(self, model: Any, count: int = 1, ranks: Ranks | None = None) -> None:
        require_count("workers", count)
        self.models = [model, *(model.replicate() for _ in range(count - 1))]
        self.count, self.ranks = count, ranks or Ranks()
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="worker") if count > 1 else None

    def split(
        self, batches: Sequence[TrainingBatch], rngs: Sequence[np.random.Generator] | None = None
    ) -> list[Share]:
        """Return the share of each worker of this process in the batches of a step.

        Every worker of every process has its own part of each batch, and its own generator for dropout.
        """
        total, first = self.ranks.size * self.count, self.ranks.rank * self.count
        shares = [Share(model, []) for model in self.models]
        for batch, rng in zip(batches, rngs or repeat(None, len(batches)), strict=True):
            parts = [batch] if total == 1 else batch.split(total)
            own_rngs = [rng] * total if rng is None or total == 1 else rng.spawn(total)
            for number, share in enumerate(shares, first):
                if number < len(parts):  # a batch may have fewer sentences than there are workers
                    share.parts.append((parts[number], own_rngs[number]))
        return shares

    def sum_over(
        self,
        function: Callable[[Share], float],
        batches: Sequence[TrainingBatch],
        rngs: Sequence[np.random.Generator] | None = None,
    ) -> float:
        """Compute the batches of a step in parallel. Their gradients add up in the gradients of the model.

        Args:
            function: Computes the gradients of a share of the batches in the gradients of its replica, and
                returns the part of the loss.
            batches: The batches.
            rngs: One generator for dropout for each batch; None for no dropout.

        Returns:
            The sum of the losses.
        """
        losses, grads = self.run(function, self.split(batches, rngs)), self.models[0].grads
        if self.count > 1:
            self.run_on_slices(self._add_replicas, len(grads))
        return self.ranks.all_reduce(sum(losses), grads)

    def _add_replicas(self, part: slice) -> None:
        """Add a part of the replicas' gradients to the model's, one replica after the other."""
        grads = self.models[0].grads[part]
        for model in self.models[1:]:
            grads += model.grads[part]

    def run_on_slices(self, function: Callable[[slice], Any], size: int) -> None:
        """Call the function in parallel with a slice of range(size) for each worker."""
        count = self.count
        cuts = [size * worker // count for worker in range(count + 1)]
        self.run(function, [slice(*ends) for ends in pairwise(cuts)])

    def run(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run the function on every item in parallel and return the results in order.

        Raises:
            UserError, WorkerError: The first error, after all other calls have ended.
        """
        if self.pool is None:
            return [function(item) for item in items]
        # settings such as np.errstate belong to a context, and a thread has an empty one
        jobs = [self.pool.submit(copy_context().run, function, item) for item in items]
        for number, error in enumerate([job.exception() for job in jobs]):
            if isinstance(error, UserError):
                raise error
            if error is not None:
                raise WorkerError(f"worker {number} stopped: {type(error).__name__}: {error}") from error
        return [job.result() for job in jobs]

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()


def workers_and_threads(
    checkpoint: Checkpoint | None, workers: int | None, threads: int | None
) -> tuple[int, int | None]:
    """Return the given numbers of workers and BLAS threads, or else the checkpoint's, or the defaults.

    Args:
        checkpoint: The checkpoint from which the run continues, or None.
        workers: The number of workers, or None.
        threads: The number of BLAS threads, or None.

    Raises:
        UserError: If a number is below 1, or if several workers have more than one thread each.
    """
    for name, count in (("threads", threads), ("workers", workers)):
        if count is not None:
            require_count(name, count)
    if workers is None:
        workers = checkpoint.workers if checkpoint else 1
    if workers > 1:
        if threads is not None and threads > 1:
            raise UserError(
                f"threads is {threads} and workers is {workers}: each worker has one thread, so leave out "
                "threads, or use one worker"
            )
        return workers, 1  # BLAS threads of several workers would wait for each other
    if threads is None:
        threads = checkpoint.threads if checkpoint else _blas_threads()
    return workers, threads


def _blas_threads() -> int | None:
    """Return the number of threads of BLAS. A resumed run must use the same number."""
    counts = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return share_of(max(counts)) if counts else None
