"""A run while it goes: step by step, with a log, measurements and checkpoints between."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.backend import like, to_numpy
from npformer.data.batches import Batch
from npformer.data.datasets import Dataset
from npformer.errors import UserError
from npformer.models import ModelConfig, build
from npformer.optim import Adam
from npformer.training.checkpoint import Checkpoint, save_checkpoint
from npformer.training.clock import Clock
from npformer.training.config import TrainingConfig, make_schedule
from npformer.training.events import Event, Noted, Report, Saved, Started, Stepped, Stopped
from npformer.training.finite import NotFiniteError
from npformer.training.ranks import Ranks
from npformer.training.run import RunFolder
from npformer.training.step import dropout_rngs
from npformer.training.stream import count_steps, training_batches
from npformer.training.validation import Validator
from npformer.training.workers import WorkerError, Workers


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
        workers: int,
        ranks: Ranks,
        report: Report | None,
    ):
        self.run, self.dataset, self.config = run, dataset, config
        self.backend, self.threads, self.ranks = backend, threads, ranks
        self.report: Report = report if report is not None and ranks.first else _ignore
        self.model = build(model_config, rng=np.random.default_rng(config.seed)).to(backend)
        self.workers = Workers(self.model, workers, ranks)
        self.adam = Adam(self.model, betas=config.betas, eps=config.eps)
        self.step = 0  # how many are complete
        self.saved_step = 0
        self.doing = "the start"
        self.steps = count_steps(dataset.train, config)
        self.schedule = make_schedule(config, model_config.d_model, self.steps)
        self.clock = Clock()
        self.validator = Validator(run, dataset, config, self.steps, self._log, self.report)

    def run_steps(self, checkpoint: Checkpoint | None, stop: Callable[[], bool]) -> Result:
        """Step until the end, or until stop says so; then the state is saved and the log complete."""
        self._require_same_run()
        if checkpoint is None:
            self._save()  # so there is always something to go on from; and a full disk shows at once
        else:
            self._restore(checkpoint)
        self.report(Started(self.step, self.steps, self.model.count_parameters(), self.run.path))
        self.validator.start(self.step)
        try:
            # numbers that overflow are looked for after each step, and need no warning of NumPy's
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                self._run_steps(stop)
        except (NotFiniteError, WorkerError) as error:
            raise UserError(
                f"training stopped at {self.doing}: {error}; {self.run.last}, of step {self.saved_step}, "
                "is the last good checkpoint"
            ) from None
        except KeyboardInterrupt:  # the second Ctrl-C: the parameters may be half updated, and are dropped
            self.ranks.leave()
            return self._finish(self.saved_step)
        finally:
            self.workers.close()
        return self._finish(self.step)

    def _run_steps(self, stop: Callable[[], bool]) -> None:
        batches = training_batches(self.dataset.train, self.config, done=self.step)
        self.clock.start(self.step)
        while self.step < self.steps:
            self._make_step(next(batches))
            self.doing = f"the validation after step {self.step}"
            if self.ranks.first:
                self.validator.measure(self.step, self.model, self._checkpoint)
            stopping = any(self.ranks.meet(stop()))
            last = self.step == self.steps
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
        loss, tokens, norm = self.workers.make_step(self.adam, batches, rngs, lr, config.clip_norm)
        self.step = step  # only now: this is the state that a checkpoint may hold
        self.clock.count(tokens, time.perf_counter() - began)
        rate = self.clock.rate
        if step == self.steps or step % config.log_every == 0:
            self._log(step=step, loss=loss, lr=lr, norm=norm, tokens=tokens, tokens_per_second=rate)
            self.clock.restart_rate()
        left = self.clock.seconds_left(step, self.steps)
        self.report(Stepped(step, self.steps, loss, lr, norm, tokens, rate, left))

    def _log(self, **entry: Any) -> None:
        if self.ranks.first:
            self.run.write_log(**entry, seconds=self.clock.seconds)

    def _save(self) -> None:
        """Save the whole state of the step that was completed last."""
        self.ranks.require_same("parameters", self.model.values)
        if self.ranks.first:
            self.run.sync_log()
            save_checkpoint(self._checkpoint(), self.run.last)
        self.saved_step = self.step
        self.report(Saved(self.step, self.run.last))

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            step=self.step,
            best_loss=self.validator.best_loss,
            model_config=self.model.config,
            training_config=self.config,
            source=self.dataset.source,
            target=self.dataset.target,
            dataset=self.dataset.description,
            fingerprint=self.dataset.fingerprint,
            backend=self.backend,
            threads=self.threads,
            workers=self.workers.count,
            ranks=self.ranks.size,
            parameters=self.model.state(),
            m=to_numpy(self.adam.m),
            v=to_numpy(self.adam.v),
        )

    def _require_same_run(self) -> None:
        """Refuse ranks that were started with other settings, or that read other sentences."""
        settings = (self.config, self.model.config, self.dataset.fingerprint, self.workers.count)
        self.ranks.require_same("settings or sentences", settings)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Take up the state of a checkpoint; the log forgets what came after it."""
        self.model.load_state(checkpoint.parameters)
        self.adam.m[...] = like(checkpoint.m, self.adam.m)
        self.adam.v[...] = like(checkpoint.v, self.adam.v)
        self.adam.t = self.step = self.saved_step = checkpoint.step
        self.validator.best_loss = checkpoint.best_loss
        self.ranks.require_same("parameters", self.model.values)
        if self.ranks.first:  # and all have read what it may write anew
            self.clock.before = self.run.cut(self.step)
        if checkpoint.ranks != self.ranks.size:
            text = f"made with {checkpoint.ranks} processes, it goes on with {self.ranks.size} (mpirun -n)"
            self.report(Noted(self.step, f"{text}: the last bits of its sums will differ"))

    def _finish(self, step: int) -> Result:
        if step >= self.steps:
            message = f"finished after step {step}; the model is {self.run.last}"
        else:
            command = self.ranks.launcher + self.run.resume_command
            message = f"stopped after step {step}; resume with: {command}"
        self.report(Stopped(step, self.steps, message))
        return Result(step, self.steps, self.validator.best_loss, message)


def _ignore(event: Event) -> None:
    """What listens where nobody does."""
