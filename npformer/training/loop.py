"""Training: begin a run or go on with it, stopped and resumed to the bit."""

from collections.abc import Callable
from contextlib import nullcontext
from os import PathLike
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from npformer.backend import choose_backend
from npformer.data.datasets import Dataset, open_dataset
from npformer.errors import UserError
from npformer.models import ModelConfig
from npformer.training.checkpoint import Checkpoint
from npformer.training.config import TrainingConfig
from npformer.training.events import Report
from npformer.training.interrupt import interrupt_between_steps
from npformer.training.matching import check_fits, check_same_run, load_last
from npformer.training.ranks import ranks_of_launch, share_of
from npformer.training.run import RunFolder
from npformer.training.trainer import Result, Trainer


def train(
    run_dir: str | PathLike[str],
    dataset: Dataset,
    model_config: ModelConfig,
    training_config: TrainingConfig,
    *,
    backend: str = "numpy",
    threads: int | None = None,
    workers: int | None = None,
    report: Report | None = None,
    stop: Callable[[], bool] | None = None,
    resume: bool = False,
) -> Result:
    """Train a model in a run's folder, from the beginning or, with resume=True, from its last checkpoint.

    The losses and the final weights are the same to the bit, however often the run was stopped between: on
    the same machine, with the same numbers of threads, workers and ranks. workers: so many threads share each
    batch (1), with a BLAS thread each; where mpirun started several processes, the ranks, so many in each,
    and the first alone writes and reports. report receives the events as they happen. stop is asked after
    each step, in every rank; Ctrl-C has the same effect, and a second one ends at once.
    Errors: UserError for settings that do not go together, a folder that holds a run already, a checkpoint
    that is broken or of other settings, a full disk, a loss that is NaN. Checkpoints on the disk stay whole.
    """
    backend = choose_backend(backend)
    _check_counts(threads=threads, workers=workers)
    check_fits(dataset, model_config)
    run = RunFolder(run_dir)
    checkpoint = None
    if resume:
        checkpoint = load_last(run)
        check_same_run(checkpoint, dataset, model_config, training_config)
    ranks = ranks_of_launch()
    workers, threads = _shares_of_work(checkpoint, workers, threads)
    with (
        ranks,
        run if ranks.first else nullcontext(),
        threadpool_limits(threads, user_api="blas"),
        interrupt_between_steps() as interrupted,
    ):
        if checkpoint is None and ranks.first:
            run.require_new()
        trainer = Trainer(
            run, dataset, model_config, training_config, backend, threads, workers, ranks, report
        )
        return trainer.run_steps(checkpoint, lambda: interrupted() or (stop is not None and stop()))


def resume(
    run_dir: str | PathLike[str],
    *,
    dataset: Dataset | None = None,
    changes: dict[str, Any] | None = None,
    backend: str | None = None,
    threads: int | None = None,
    workers: int | None = None,
    report: Report | None = None,
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Go on with a run from its last checkpoint, which knows all settings.

    dataset: the same sentences, where they can no longer be had as before. changes: training settings that
    may change, such as steps. Without backend, threads and workers, they are as before.
    Errors: UserError as for train, and where there is nothing to go on from.
    """
    checkpoint = load_last(RunFolder(run_dir))
    return train(
        run_dir,
        dataset or open_dataset(checkpoint.dataset),
        checkpoint.model_config,
        checkpoint.training_config.replace(**(changes or {})),
        backend=backend or checkpoint.backend,
        threads=threads,
        workers=workers,
        report=report,
        stop=stop,
        resume=True,
    )


def _check_counts(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UserError(f"{name} is {count}: it must be 1 or more")


def _shares_of_work(
    checkpoint: Checkpoint | None, workers: int | None, threads: int | None
) -> tuple[int, int | None]:
    """How many workers, and BLAS threads in each: as asked for, else as before, else what there is."""
    if workers is None:
        workers = checkpoint.workers if checkpoint else 1
    if workers > 1:
        return workers, 1  # more would only wait for each other
    if threads is None:
        threads = checkpoint.threads if checkpoint else _blas_threads()
    return workers, threads


def _blas_threads() -> int | None:
    """How many threads matrix products use; a run that goes on must use as many."""
    counts = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return share_of(max(counts)) if counts else None
