"""The training loop: step by step, with a log, validation and checkpoints, stopped and resumed to the bit."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from npformer.backend import choose_backend, like, to_numpy
from npformer.data.batches import Batch
from npformer.data.datasets import Dataset, open_dataset
from npformer.errors import UserError
from npformer.models import ModelConfig, build
from npformer.optim import Adam
from npformer.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from npformer.training.clock import Clock
from npformer.training.config import TrainingConfig, make_schedule
from npformer.training.events import Event, Report, Saved, Started, Stepped, Stopped, Validated
from npformer.training.finite import NotFiniteError
from npformer.training.interrupt import interrupt_between_steps
from npformer.training.matching import check_fits, check_same_run
from npformer.training.run import RunFolder
from npformer.training.step import dropout_rngs, evaluate, make_step
from npformer.training.stream import count_steps, training_batches, validation_batches


@dataclass(frozen=True)
class Result:
    """How a run ended: after which of its steps, and a sentence that says so."""

    step: int
    steps: int
    best_loss: float | None
    message: str

    @property
    def finished(self) -> bool:
        """Whether all steps were made."""
        return self.step >= self.steps


def train(
    run_dir: str | PathLike[str],
    dataset: Dataset,
    model_config: ModelConfig,
    training_config: TrainingConfig,
    *,
    backend: str = "numpy",
    threads: int | None = None,
    report: Report | None = None,
    stop: Callable[[], bool] | None = None,
    resume: bool = False,
) -> Result:
    """Train a model in a run's folder, from the beginning or, with resume=True, from its last checkpoint.

    The losses and the final weights are the same to the bit, however often the run was stopped between: on
    the same machine, with the same number of threads. report receives the events as they happen. stop is
    asked after each step; Ctrl-C has the same effect, and a second one ends at once.
    Errors: UserError for settings that do not go together, a folder that holds a run already, a checkpoint
    that is broken or of other settings, a full disk, a loss that is NaN. Checkpoints on the disk stay whole.
    """
    backend = choose_backend(backend)
    if threads is not None and threads < 1:
        raise UserError(f"threads is {threads}: it must be 1 or more")
    check_fits(dataset, model_config)
    run = RunFolder(run_dir)
    checkpoint = None
    if resume:
        checkpoint = load_last(run)
        check_same_run(checkpoint, dataset, model_config, training_config)
    if threads is None:
        threads = checkpoint.threads if checkpoint else _blas_threads()
    with run, threadpool_limits(threads, user_api="blas"), interrupt_between_steps() as interrupted:
        if checkpoint is None:
            run.require_new()
        trainer = Trainer(run, dataset, model_config, training_config, backend, threads, report)
        return trainer.run_steps(checkpoint, lambda: interrupted() or (stop is not None and stop()))


def resume(
    run_dir: str | PathLike[str],
    *,
    dataset: Dataset | None = None,
    changes: dict[str, Any] | None = None,
    backend: str | None = None,
    threads: int | None = None,
    report: Report | None = None,
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Go on with a run from its last checkpoint, which knows all settings.

    dataset: the same sentences, where they can no longer be had as before. changes: training settings that
    may change, such as steps. Without backend and threads, they are as before.
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
        report=report,
        stop=stop,
        resume=True,
    )


def load_last(run: RunFolder) -> Checkpoint:
    """A run's last checkpoint; UserError where there is none or it is broken, with what may help."""
    try:
        return load_checkpoint(run.last)
    except UserError as error:
        try:
            best = load_checkpoint(run.best)
        except UserError:
            raise error from None
        raise UserError(
            f"{error}; {run.best}, of step {best.step}, is whole: copy it to {run.last} to go on from there"
        ) from None


class Trainer:
    """A run while it goes: the model, its optimizer, and how many steps are done."""

    def __init__(
        self,
        run: RunFolder,
        dataset: Dataset,
        model_config: ModelConfig,
        config: TrainingConfig,
        backend: str,
        threads: int | None,
        report: Report | None,
    ):
        self.run, self.dataset, self.config = run, dataset, config
        self.backend, self.threads = backend, threads
        self.report: Report = report or _ignore
        self.model = build(model_config, rng=np.random.default_rng(config.seed)).to(backend)
        self.adam = Adam(self.model, betas=config.betas, eps=config.eps)
        self.step = 0  # how many are complete
        self.saved_step = 0
        self.doing = "the start"
        self.best_loss: float | None = None
        self.steps = count_steps(dataset.train, config)
        self.schedule = make_schedule(config, model_config.d_model, self.steps)
        self.valid = validation_batches(dataset.valid, config)
        self.clock = Clock()

    def run_steps(self, checkpoint: Checkpoint | None, stop: Callable[[], bool]) -> Result:
        """Step until the end, or until stop says so; then the state is saved and the log complete."""
        if checkpoint is None:
            self._save()  # so there is always something to go on from; and a full disk shows at once
        else:
            self._restore(checkpoint)
        self.report(Started(self.step, self.steps, self.model.count_parameters(), self.run.path))
        try:
            # numbers that overflow are looked for after each step, and need no warning of NumPy's
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                self._run_steps(stop)
        except NotFiniteError as error:
            raise UserError(
                f"training stopped at {self.doing}: {error}; {self.run.last}, of step {self.saved_step}, "
                "is the last good checkpoint"
            ) from None
        except KeyboardInterrupt:  # the second Ctrl-C: the parameters may be half updated, and are dropped
            return self._finish(self.saved_step)
        return self._finish(self.step)

    def _run_steps(self, stop: Callable[[], bool]) -> None:
        batches = training_batches(self.dataset.train, self.config, done=self.step)
        self.clock.start(self.step)
        while self.step < self.steps:
            self._make_step(next(batches))
            last = self.step == self.steps
            if self.valid and (last or self.step % self.config.validate_every == 0):
                self._validate()
            stopping = stop()
            if last or stopping or self.step % self.config.checkpoint_every == 0:
                self._save()
            if stopping:
                return

    def _make_step(self, batches: list[Batch]) -> None:
        """One update from the gradients of all the batches, or none where something is not finite."""
        step, config = self.step + 1, self.config
        self.doing = f"step {step}"
        began = time.perf_counter()
        lr = self.schedule(step)
        rngs = dropout_rngs(config.seed, step, len(batches))
        loss, tokens, norm = make_step(self.model, self.adam, batches, rngs, lr, config.clip_norm)
        self.step = step  # only now: this is the state that a checkpoint may hold
        self.clock.count(tokens, time.perf_counter() - began)
        rate = self.clock.rate
        if step == self.steps or step % config.log_every == 0:
            seconds = self.clock.seconds
            self.run.write_log(
                step=step, loss=loss, lr=lr, norm=norm, tokens=tokens, tokens_per_second=rate, seconds=seconds
            )
            self.clock.restart_rate()
        left = self.clock.seconds_left(step, self.steps)
        self.report(Stepped(step, self.steps, loss, lr, norm, tokens, rate, left))

    def _validate(self) -> None:
        """Measure the model on the validation sentences, and keep it where it is the best so far."""
        self.doing = f"the validation after step {self.step}"
        loss, accuracy, _, objective = evaluate(self.model, self.valid)
        # by the objective: label smoothing buys right words with a higher plain loss
        best = self.best_loss is None or objective < self.best_loss
        self.run.write_log(
            step=self.step,
            valid_loss=loss,
            valid_accuracy=accuracy,
            valid_objective=objective,
            best=best,
            seconds=self.clock.seconds,
        )
        self.report(Validated(self.step, loss, accuracy, best))
        if best:
            self.best_loss = objective
            save_checkpoint(self._checkpoint(), self.run.best)
            self.report(Saved(self.step, self.run.best))

    def _save(self) -> None:
        """Save the whole state of the step that was completed last."""
        self.run.sync_log()
        save_checkpoint(self._checkpoint(), self.run.last)
        self.saved_step = self.step
        self.report(Saved(self.step, self.run.last))

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            step=self.step,
            best_loss=self.best_loss,
            model_config=self.model.config,
            training_config=self.config,
            source=self.dataset.source,
            target=self.dataset.target,
            dataset=self.dataset.description,
            fingerprint=self.dataset.fingerprint,
            backend=self.backend,
            threads=self.threads,
            parameters=self.model.state(),
            m=to_numpy(self.adam.m),
            v=to_numpy(self.adam.v),
        )

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Take up the state of a checkpoint; the log forgets what came after it."""
        self.model.load_state(checkpoint.parameters)
        self.adam.m[...] = like(checkpoint.m, self.adam.m)
        self.adam.v[...] = like(checkpoint.v, self.adam.v)
        self.adam.t = self.step = self.saved_step = checkpoint.step
        self.best_loss = checkpoint.best_loss
        self.clock.before = self.run.cut_log(self.step)

    def _finish(self, step: int) -> Result:
        if step >= self.steps:
            message = f"finished after step {step}; the model is {self.run.last}"
        else:
            message = f"stopped after step {step}; resume with: {self.run.resume_command}"
        self.report(Stopped(step, self.steps, message))
        return Result(step, self.steps, self.best_loss, message)


def _blas_threads() -> int | None:
    """How many threads matrix products use; a run that goes on must use as many."""
    counts = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return max(counts, default=None)


def _ignore(event: Event) -> None:
    """What listens where nobody does."""
