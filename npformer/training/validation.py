"""What is measured on the validation sentences while a run goes: loss, BLEU, the average of its snapshots.

None of it changes the model or draws a random number, so the steps are the same with and without.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from npformer.bleu import bleu, require_sacrebleu
from npformer.data import END
from npformer.data.batches import Example
from npformer.data.codecs import Codec
from npformer.data.datasets import Dataset
from npformer.decoding.many import translate_ids
from npformer.errors import UserError
from npformer.training.averaging import Snapshots
from npformer.training.checkpoint import Checkpoint, save_checkpoint
from npformer.training.config import TrainingConfig
from npformer.training.events import Averaged, Noted, Report, Saved, Scored, Validated
from npformer.training.run import RunFolder
from npformer.training.step import evaluate
from npformer.training.stream import validation_batches


class Validator:
    """Measures a run's model between steps and keeps the best; tells the log, and whoever listens."""

    def __init__(
        self,
        run: RunFolder,
        dataset: Dataset,
        config: TrainingConfig,
        steps: int,
        log: Callable[..., None],
        report: Report,
    ):
        self.run, self.dataset, self.config, self.steps = run, dataset, config, steps
        self.log, self.report = log, report
        self.batches = validation_batches(dataset.valid, config)
        self.examples = dataset.valid[: config.bleu_sentences]
        self.snapshots = Snapshots(run, config.average_last) if config.average_last else None
        self.counts_bleu = bool(config.bleu_every and self.examples)
        self.best_loss: float | None = None  # the lowest objective so far

    def start(self, step: int) -> None:
        """Tell, once, what cannot be measured here."""
        if not self.counts_bleu:
            return
        try:
            require_sacrebleu()
        except UserError as error:
            self.counts_bleu = False
            self.report(Noted(step, f"{error}; the run goes on without"))

    def measure(self, step: int, model: Any, checkpoint: Callable[[], Checkpoint]) -> None:
        """All that is due after this step; checkpoint() is the run's state with the best loss by then."""
        config = self.config
        if self.batches and self._is_due(step, config.validate_every):
            self._validate(step, model, checkpoint)
        if self.counts_bleu and self._is_due(step, config.bleu_every):
            score = greedy_bleu(model, self.examples, self.dataset.target)
            self.log(step=step, valid_bleu=score, sentences=len(self.examples))
            self.report(Scored(step, score, len(self.examples)))
        if self.snapshots is not None:
            if step % config.average_every == 0:
                self.snapshots.take(checkpoint())
            if step == self.steps:
                self._average(step)

    def _is_due(self, step: int, every: int | None) -> bool:
        return every is not None and (step == self.steps or step % every == 0)

    def _validate(self, step: int, model: Any, checkpoint: Callable[[], Checkpoint]) -> None:
        """Measure the model, and keep it where it is the best so far."""
        loss, accuracy, _, objective = evaluate(model, self.batches)
        best = self._is_best(objective)
        self.log(step=step, valid_loss=loss, valid_accuracy=accuracy, valid_objective=objective, best=best)
        self.report(Validated(step, loss, accuracy, best))
        if best:
            self._keep(checkpoint(), objective)

    def _average(self, step: int) -> None:
        """Make the average of the snapshots, measure it, and keep it where it is the best of the run."""
        assert self.snapshots is not None
        made = self.snapshots.average()
        if made is None:
            return
        averaged, snapshots = made
        save_checkpoint(averaged, self.run.averaged)
        self.report(Saved(step, self.run.averaged))
        loss, best = None, False
        if self.batches:
            model = averaged.model(averaged.backend)
            loss, accuracy, _, objective = evaluate(model, self.batches)
            best = self._is_best(objective)
            self.log(
                step=step,
                averaged=snapshots,
                averaged_loss=loss,
                averaged_accuracy=accuracy,
                averaged_objective=objective,
                best=best,
            )
            if best:
                self._keep(averaged, objective)
        self.report(Averaged(step, snapshots, loss, best))

    def _is_best(self, objective: float) -> bool:
        """By the objective: label smoothing buys right words with a higher plain loss."""
        return self.best_loss is None or objective < self.best_loss

    def _keep(self, checkpoint: Checkpoint, objective: float) -> None:
        self.best_loss = objective
        save_checkpoint(dataclasses.replace(checkpoint, best_loss=objective), self.run.best)
        self.report(Saved(checkpoint.step, self.run.best))


def greedy_bleu(model: Any, examples: Sequence[Example], codec: Codec) -> float:
    """BLEU of greedy translations of the sources, against the targets as the codec writes them.

    codec: of the target. A target's unknown words count as words that were missed.
    Errors: UserError where sacrebleu is not installed.
    """
    found = translate_ids(model, [[*source, END] for source, _ in examples])
    translations = [codec.decode(ids) for ids in found]
    references = [codec.decode(target) for _, target in examples]
    return bleu(translations, references, getattr(codec, "text", "raw")).score
