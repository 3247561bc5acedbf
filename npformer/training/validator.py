"""Validation during a run: the loss, BLEU, and the average of the last snapshots.

Validation neither changes the model nor draws random numbers, so the steps are the same with and without it.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from npformer.data import END
from npformer.data.codecs import Codec
from npformer.data.dataset import Dataset
from npformer.data.loader import DataLoader, Example
from npformer.errors import UserError
from npformer.generation.batch_decode import translate_ids
from npformer.generation.bleu import bleu, require_sacrebleu
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import Checkpoint, save_checkpoint
from npformer.training.averaging import Snapshots
from npformer.training.config import TrainingConfig
from npformer.training.events import Averaged, Noted, Report, Saved, Scored, Validated
from npformer.training.run_folder import RunFolder
from npformer.training.step import evaluate


class Validator:
    """The validation of a run: evaluates the model between steps, saves the best, logs and reports.

    Args:
        run: The folder of the run.
        dataset: The dataset with the validation sentences.
        config: The settings of the training.
        steps: The number of steps of the run.
        log: Writes an entry to the log.
        report: Called with each event.
    """

    def __init__(
        self,
        run: RunFolder,
        dataset: Dataset,
        config: TrainingConfig,
        steps: int,
        log: Callable[..., None],
        report: Report,
    ) -> None:
        self.run, self.dataset, self.config, self.steps = run, dataset, config, steps
        self.log, self.report = log, report
        self.batches = DataLoader(dataset.valid, dataset.valid_lengths, **config.batching).epoch()
        self.examples = dataset.valid[: config.bleu_sentences]
        self.snapshots = Snapshots(run, config.average_last) if config.average_last else None
        self.measures_bleu = bool(config.bleu_every and self.examples)
        # the lowest objective so far, that is, the validation loss with label smoothing; the name is that of
        # the checkpoint's field
        self.best_loss: float | None = None

    def start(self, step: int) -> None:
        """Report, before the first step, that BLEU cannot be computed if sacrebleu is missing."""
        if not self.measures_bleu:
            return
        try:
            require_sacrebleu()
        except UserError as error:
            self.measures_bleu = False
            self.report(Noted(step, f"{error}; the run continues without it"))

    def measure(self, step: int, model: Any, checkpoint: Callable[[], Checkpoint]) -> None:
        """Measure everything that is due after this step.

        Args:
            step: The number of complete steps.
            model: The model.
            checkpoint: A function that returns the state of the run, with the lowest objective so far.
        """
        config = self.config
        if self.batches and self._is_due(step, config.validate_every):
            self._validate(step, model, checkpoint)
        if self.measures_bleu and self._is_due(step, config.bleu_every):
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
        """Evaluate the model, and save it if it is the best so far."""
        loss, accuracy, _, objective = evaluate(model, self.batches)
        best = self._is_best(objective)
        self.log(step=step, valid_loss=loss, valid_accuracy=accuracy, valid_objective=objective, best=best)
        self.report(Validated(step, loss, accuracy, best))
        if best:
            self._save_best(checkpoint(), objective)

    def _average(self, step: int) -> None:
        """Average the snapshots, evaluate the average, and save it if it is the best of the run."""
        assert self.snapshots is not None
        average = self.snapshots.average()
        if average is None:
            return
        averaged, snapshots = average
        save_checkpoint(averaged, self.run.averaged)
        self.report(Saved(step, self.run.averaged))
        loss, best = None, False
        if self.batches:
            model = model_from_checkpoint(averaged, averaged.backend)
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
                self._save_best(averaged, objective)
        self.report(Averaged(step, snapshots, loss, best))

    def _is_best(self, objective: float) -> bool:
        """Return whether an objective is the lowest so far.

        The objective decides, not the loss without label smoothing: a model that was trained with smoothing
        predicts more tokens correctly although that loss is higher.
        """
        return self.best_loss is None or objective < self.best_loss

    def _save_best(self, checkpoint: Checkpoint, objective: float) -> None:
        self.best_loss = objective
        save_checkpoint(dataclasses.replace(checkpoint, best_loss=objective), self.run.best)
        self.report(Saved(checkpoint.step, self.run.best))


def greedy_bleu(model: Any, examples: Sequence[Example], codec: Codec) -> float:
    """Compute BLEU of greedy translations of the sources, with the decoded targets as references.

    An unknown word of a target counts as a wrong word.

    Args:
        model: The model that translates.
        examples: The sources and targets.
        codec: The codec of the target.

    Raises:
        UserError: If sacrebleu is not installed.
    """
    outputs = translate_ids(model, [[*source, END] for source, _ in examples])
    translations = [codec.decode(ids) for ids in outputs]
    references = [codec.decode(target) for _, target in examples]
    return bleu(translations, references, getattr(codec, "text", "raw")).score
