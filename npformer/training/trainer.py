"""The training loop, which begins or resumes a run, makes its steps, and writes its log and checkpoints.

A run that was stopped and resumed has bitwise the same losses and parameters as an uninterrupted one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.backend import Array, choose_backend, like, to_numpy
from npformer.data.base_dataset import Dataset
from npformer.data.dataset import open_dataset
from npformer.data.loader import TrainingBatch
from npformer.errors import UserError, in_context, quantity
from npformer.models.registry import ModelConfig, build, config_from_checkpoint, kind_of, require_size
from npformer.storage.checkpoint import Checkpoint, save_checkpoint
from npformer.training.config import TrainingConfig, make_optimizer, make_schedule
from npformer.training.events import Event, Noted, Report, Result, Saved, Started, Stepped, Stopped
from npformer.training.nan_checks import NotFiniteError
from npformer.training.process import StopRequest, interrupt_between_steps, keep_freed_memory_in_process
from npformer.training.ranks import Ranks, ranks_of_launch
from npformer.training.resume_checks import check_settings, load_last
from npformer.training.run_folder import RunFolder
from npformer.training.step import dropout_rngs, make_step
from npformer.training.timer import Timer
from npformer.training.validator import Validator
from npformer.training.workers import WorkerError, Workers, workers_and_threads


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
    initial: Mapping[str, Array] | None = None,
) -> Result:
    """Train a model in the folder of a run, from the beginning or from the run's last checkpoint.

    However often a run is stopped and resumed, its losses and its final parameters are bitwise the same,
    as long as the machine and the numbers of threads, workers and ranks are the same.

    Args:
        run_dir: The folder of the run, for its checkpoints and its log.
        dataset: The examples and their codecs.
        model_config: The configuration of the model.
        training_config: The settings of the training.
        backend: "numpy", "cupy" or "auto".
        threads: The number of BLAS threads; by default, as many as BLAS uses now.
        workers: The number of threads that share each batch, with one BLAS thread each (1 by default). If
            mpirun started several processes, these share each batch too, and only the first one writes and
            reports.
        report: A function that is called with each event as it happens.
        stop: Called after each step, in every process; True stops the run. The first Ctrl-C stops it in the
            same way, the second one at once. So do SIGTERM and SIGHUP, if the program has handlers for them.
        resume: Continue from the last checkpoint. A run that has ended can be made longer, by more steps or
            epochs; if its learning rate had decayed, it does so anew (see `make_schedule`).
        initial: The parameters with which a new run begins, by their dotted names, such as those of a trained
            model. By default, they are random. A run that continues has those of its checkpoint.

    Returns:
        The outcome of the run.

    Raises:
        UserError: If settings do not go together, the folder already holds a run, a checkpoint is broken or
            has other settings, the disk is full, or the loss is NaN. Checkpoints on the disk stay whole.
    """
    backend = choose_backend(backend)
    dataset.check_model(model_config)
    run = RunFolder(run_dir)
    checkpoint = load_last(run) if resume else None
    training_config = check_settings(run, checkpoint, dataset, model_config, training_config)
    ranks = ranks_of_launch()
    workers, threads = workers_and_threads(checkpoint, workers, threads)
    with (
        ranks,
        run if ranks.first else nullcontext(),
        threadpool_limits(threads, user_api="blas"),
        interrupt_between_steps() as request,
    ):
        if checkpoint is None and ranks.first:
            run.require_new()
        result = Trainer(
            run,
            dataset,
            model_config,
            training_config,
            backend=backend,
            threads=threads,
            workers=workers,
            ranks=ranks,
            report=report,
            initial=initial,
        ).run_steps(checkpoint, request, stop or (lambda: False))
    # a signal may also have come after the last step
    return replace(result, stopped_by=result.stopped_by or request.signum)


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
    """Continue a run from its last checkpoint, which holds all settings.

    Args:
        run_dir: The folder of the run.
        dataset: The dataset of the run, if it cannot be made again from the checkpoint's description.
        changes: Training settings that may change, such as steps.
        backend: As for `train`; by default, that of the checkpoint.
        threads: As for `train`; by default, that of the checkpoint.
        workers: As for `train`; by default, that of the checkpoint.
        report: As for `train`.
        stop: As for `train`.

    Returns:
        The outcome of the run.

    Raises:
        UserError: As for `train`, and if there is no checkpoint to continue from.
    """
    checkpoint = load_last(RunFolder(run_dir))
    model_config = config_from_checkpoint(checkpoint)
    with in_context(checkpoint.place):
        require_size(model_config, checkpoint.parameters)
    return train(
        run_dir,
        dataset or open_dataset(checkpoint.dataset),
        model_config,
        TrainingConfig.from_checkpoint(checkpoint).replace(**(changes or {})),
        backend=backend or checkpoint.backend,
        threads=threads,
        workers=workers,
        report=report,
        stop=stop,
        resume=True,
    )


class Trainer:
    """A run in progress: the model, its optimizer, its data loader, and the number of steps made.

    Args:
        run: The open folder of the run.
        dataset: The examples and their codecs.
        model_config: The configuration of the model.
        config: The settings of the training.
        backend: "numpy" or "cupy".
        threads: The number of BLAS threads, for the checkpoint.
        workers: The number of threads that share each batch.
        ranks: The processes that share each batch.
        report: Called with each event in the first process, or None.
        initial: The parameters with which a new run begins, as for `train`.
    """

    def __init__(
        self,
        run: RunFolder,
        dataset: Dataset,
        model_config: ModelConfig,
        config: TrainingConfig,
        *,
        backend: str,
        threads: int | None,
        workers: int,
        ranks: Ranks,
        report: Report | None,
        initial: Mapping[str, Array] | None = None,
    ) -> None:
        self.run, self.dataset, self.config = run, dataset, config
        self.backend, self.threads, self.ranks = backend, threads, ranks
        self.report: Report = report if report is not None and ranks.first else _ignore
        self.model = build(model_config, rng=np.random.default_rng(config.seed)).to(backend)
        if initial is not None:
            self.model.load_state_dict(dict(initial))
        keep_freed_memory_in_process()
        self.workers = Workers(self.model, workers, ranks)
        self.optimizer = make_optimizer(config, self.model)
        self.loader = dataset.loader(model_config.max_length, **config.batching)
        self.steps = config.total_steps(self.loader)
        self.schedule = make_schedule(config, model_config.d_model, self.steps)
        self.step = 0  # the number of complete steps
        self.saved_step = 0
        self.stopped_by: int | None = None
        self.doing = "the start"  # for the error message if training stops
        self.timer = Timer()
        self.validator = Validator(
            run, dataset, model_config.max_length, config, self.steps, self._log, self.report
        )

    def run_steps(
        self, checkpoint: Checkpoint | None, request: StopRequest, stop: Callable[[], bool]
    ) -> Result:
        """Make steps until the end, a signal, or until `stop` returns True, then save the state.

        Args:
            checkpoint: The state to continue from; None begins the run.
            request: The signal that asks this process to stop, once it has arrived.
            stop: Called after each step.

        Returns:
            The outcome of the run.

        Raises:
            UserError: If a number is not finite, a worker fails or a file cannot be written.
        """
        self._require_same_run()
        if checkpoint is None:
            # so that there is always a checkpoint to continue from, and a full disk is found at once
            self._save()
        else:
            self._restore(checkpoint)
        self.report(Started(self.step, self.steps, self.model.count_parameters(), self.run.path))
        self.validator.start(self.step)
        try:
            # each step checks its numbers for overflow, so NumPy need not warn
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                self._run_steps(request, stop)
        except (NotFiniteError, WorkerError) as error:
            raise UserError(
                f"training stopped at {self.doing}: {error}; {self.run.last}, of step {self.saved_step}, "
                "is the last good checkpoint"
            ) from None
        except KeyboardInterrupt:  # the second Ctrl-C: the parameters may be half updated and are not saved
            self.stopped_by = request.signum
            self.ranks.abort()
            return self._finish(self.saved_step)
        finally:
            self.workers.close()
        return self._finish(self.step)

    def _run_steps(self, request: StopRequest, stop: Callable[[], bool]) -> None:
        batches = self.loader.steps(self.step)
        self.timer.start(self.step)
        while self.step < self.steps:
            self._step_and_log(next(batches))
            self.doing = f"the validation after step {self.step}"
            if self.ranks.first:
                self.validator.measure(self.step, self.model, self._checkpoint)
            asked = self.ranks.all_gather((request.signum, stop()))  # all ranks stop after the same step
            self.stopped_by = next((signum for signum, _ in asked if signum is not None), None)
            stopping = self.stopped_by is not None or any(stops for _, stops in asked)
            last = self.step == self.steps
            if last or stopping or self.step % self.config.checkpoint_every == 0:
                self._save()
            if stopping:
                return

    def _step_and_log(self, batches: Sequence[TrainingBatch]) -> None:
        """Make one step with all the batches, then log and report it."""
        step, config = self.step + 1, self.config
        self.doing = f"step {step}"
        began = time.perf_counter()
        lr = self.schedule(step)
        rngs = dropout_rngs(config.seed, step, len(batches))
        loss, tokens, norm = make_step(
            self.model, self.optimizer, batches, rngs, lr, config.clip_norm, self.workers, config.r_drop
        )
        self.step = step  # only now, because a checkpoint may be written whenever this number changes
        self.timer.count(tokens, time.perf_counter() - began)
        speed = self.timer.tokens_per_second
        if step == self.steps or step % config.log_every == 0:
            self._log(step=step, loss=loss, lr=lr, norm=norm, tokens=tokens, tokens_per_second=speed)
            self.timer.restart_throughput()
        seconds_left = self.timer.seconds_left(step, self.steps)
        self.report(Stepped(step, self.steps, loss, lr, norm, tokens, speed, seconds_left))

    def _log(self, **entry: Any) -> None:
        """Write an entry to the log, in the first process only."""
        if self.ranks.first:
            self.run.write_log(**entry, seconds=self.timer.seconds)

    def _save(self) -> None:
        """Save the whole state after the last complete step."""
        self.ranks.require_same("parameters", self.model.values)
        if self.ranks.first:
            self.run.sync_log()
            save_checkpoint(self._checkpoint(), self.run.last)
        self.saved_step = self.step
        self.report(Saved(self.step, self.run.last))

    def _checkpoint(self) -> Checkpoint:
        """Return the whole state of the run."""
        return Checkpoint(
            step=self.step,
            best_loss=self.validator.best_loss,
            model_kind=kind_of(self.model.config),
            model_settings=self.model.config.to_dict(),
            training_settings=self.config.to_dict(),
            codecs={role: codec.to_json() for role, codec in self.dataset.codecs.items()},
            dataset=self.dataset.description,
            fingerprint=self.dataset.fingerprint,
            backend=self.backend,
            threads=self.threads,
            workers=self.workers.count,
            ranks=self.ranks.size,
            parameters=self.model.state_dict(),
            m=to_numpy(self.optimizer.m),
            v=to_numpy(self.optimizer.v),
        )

    def _require_same_run(self) -> None:
        """Check that all ranks were started with the same settings and read the same data."""
        settings = (self.config, self.model.config, self.dataset.fingerprint, self.workers.count)
        self.ranks.require_same("settings or data", settings)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint, and remove the log entries after it."""
        self.model.load_state_dict(checkpoint.parameters)
        self.optimizer.m[...] = like(checkpoint.m, self.optimizer.m)
        self.optimizer.v[...] = like(checkpoint.v, self.optimizer.v)
        self.optimizer.t = self.step = self.saved_step = checkpoint.step
        self.validator.best_loss = checkpoint.best_loss
        self.ranks.require_same("parameters", self.model.values)
        if self.ranks.first:  # after require_same, so all ranks have read the files that this may change
            self.timer.before, note = self.run.cut(self.step)
            if note:
                self.report(Noted(self.step, note))
        if checkpoint.ranks != self.ranks.size:
            before = quantity(checkpoint.ranks, "process", "processes")
            text = f"the run was made with {before} and continues with {self.ranks.size} (mpirun -n)"
            self.report(Noted(self.step, f"{text}: the last bits of its sums will differ"))
        if self.config.lengthened_after != checkpoint.training_settings.get("lengthened_after"):
            self._begin_longer_run()

    def _begin_longer_run(self) -> None:
        """Log, report and save that a run which had ended continues, and its learning rate rises again."""
        text = f"made longer, to {self.steps:,} steps: the learning rate decays anew"
        self._log(step=self.step, lengthened_to=self.steps)
        self.report(Noted(self.step, text))
        self._save()

    def _finish(self, step: int) -> Result:
        """Report the end of the run."""
        if step >= self.steps:
            message = f"finished after step {step}; the model is {self.run.last}"
        else:
            command = self.ranks.launcher + self.run.resume_command
            message = f"stopped after step {step}; resume with: {command}"
        self.report(Stopped(step, self.steps, message))
        return Result(
            step,
            self.steps,
            self.validator.best_loss,
            message,
            self.stopped_by,
            reads=self.model.config.reads,
        )


def _ignore(event: Event) -> None:
    """Ignore the event: the default when no progress callback is given."""
