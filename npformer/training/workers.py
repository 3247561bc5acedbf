"""Data parallelism: the batch split over threads, each with a replica of the model and one BLAS thread.

NumPy lets other threads run while it computes, so two threads keep two cores busy, also with all that lies
between the matrix products, where BLAS's own threads have nothing to do. Every replica reads the same
values and has gradients of its own; they are added in a fixed order, so the same seed gives the same bits.
Where mpirun started several processes, the batch is split over the workers of all.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise, repeat
from typing import Any, TypeVar

import numpy as np

from npformer.data.batches import split_batch
from npformer.errors import UserError
from npformer.optim import Adam, clip_global_norm
from npformer.training.finite import check_gradients, check_parameters
from npformer.training.heap import keep_freed_memory
from npformer.training.ranks import Ranks
from npformer.training.step import AnyBatch, add_gradients

Made = TypeVar("Made")


class WorkerError(UserError):
    """Something that no run survives happened in a worker, such as memory that is all used up."""


class Workers:
    """Threads that make training steps together: worker 0 has the model itself, the others replicas.

    One worker is the step of make_step, to the bit. ranks: the processes that share each batch, with so many
    workers each; this one alone. Errors: UserError for a number below 1.
    """

    def __init__(self, model: Any, count: int = 1, ranks: Ranks | None = None):
        if count < 1:
            raise UserError(f"workers is {count}: it must be 1 or more")
        keep_freed_memory()  # of the whole process, and before there are threads
        self.models = [model, *(model.replicate() for _ in range(count - 1))]
        self.count, self.ranks = count, ranks or Ranks()
        self.pool = ThreadPoolExecutor(count, thread_name_prefix="worker") if count > 1 else None

    def make_step(
        self,
        adam: Adam,
        batches: Sequence[AnyBatch],
        rngs: Sequence[np.random.Generator] | None,
        lr: float,
        clip_norm: float | None = None,
    ) -> tuple[float, int, float]:
        """One update from the gradients of all the batches. Returns (loss, tokens, the gradients' length).

        Errors: NotFiniteError for a loss, a gradient or a new parameter that is NaN or infinite;
        WorkerError for what else a worker raises; always after all have ended.
        """
        model = self.models[0]
        loss, tokens = self.loss_and_gradients(batches, rngs)
        norm = clip_global_norm(model.grads, clip_norm or np.inf)
        check_gradients(norm, model)
        adam.step(lr, self.over)
        check_parameters(model)
        return loss, tokens, norm

    def loss_and_gradients(
        self, batches: Sequence[AnyBatch], rngs: Sequence[np.random.Generator] | None = None
    ) -> tuple[float, int]:
        """As loss_and_gradients of step.py, every batch shared out among the workers of all ranks."""
        total = sum(batch.tokens for batch in batches)
        everyone, before = self.ranks.size * self.count, self.ranks.rank * self.count
        shares = [split_batch(batch, everyone) for batch in batches]
        draws = [_spawn(rng, everyone) for rng in rngs or repeat(None, len(batches))]

        def work(worker: int) -> float:
            model = self.models[worker]
            model.zero_grad()
            loss, number = 0.0, before + worker
            for share, draw in zip(shares, draws, strict=True):
                if number < len(share):  # a batch may have fewer sentences than there are workers
                    loss += add_gradients(model, share[number], total, draw[number])
            return loss

        losses = self.run(work, range(self.count))
        self.over(self._add_up, len(self.models[0].grads))
        return self.ranks.add_up(sum(losses), self.models[0].grads), total

    def _add_up(self, part: slice) -> None:
        """Add the replicas' gradients to the model's, one after the other."""
        grads = self.models[0].grads[part]
        for model in self.models[1:]:
            grads += model.grads[part]

    def over(self, function: Callable[[slice], Any], size: int) -> None:
        """Call the function with slices that make up range(size), one a worker, all at once."""
        count = self.count
        cuts = [size * worker // count for worker in range(count + 1)]
        self.run(function, [slice(*ends) for ends in pairwise(cuts)])

    def run(self, function: Callable[[Any], Made], things: Sequence[Any]) -> list[Made]:
        """What the function makes of each thing, all at once; the first error, once all have ended."""
        if self.pool is None:
            return [function(thing) for thing in things]
        # settings such as np.errstate belong to a context, which a thread of its own would not have
        jobs = [self.pool.submit(copy_context().run, function, thing) for thing in things]
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


def _spawn(rng: np.random.Generator | None, count: int) -> list[Any]:
    """A generator for each worker; a single one draws from the generator itself."""
    return [rng] * count if rng is None or count == 1 else rng.spawn(count)
