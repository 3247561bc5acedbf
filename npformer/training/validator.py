"""Validation during a run: the loss, BLEU, a sample of text, and the average of the last snapshots.

Validation does not change the model, and the sample has a generator of its own. So the steps are the same
with and without it.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npformer.data import END
from npformer.data.base_dataset import Dataset
from npformer.data.codecs import AnyCodec
from npformer.data.loader import Example
from npformer.errors import UserError
from npformer.generation.batch_decode import translate_ids
from npformer.generation.bleu import bleu, require_sacrebleu
from npformer.generation.sampling import sample_ids
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import Checkpoint, save_checkpoint
from npformer.training.averaging import Snapshots
from npformer.training.config import TrainingConfig
from npformer.training.evaluation import evaluate
from npformer.training.events import Averaged, Noted, Report, Sampled, Saved, Scored, Validated
from npformer.training.run_folder import RunFolder

SAMPLE_TOKENS = 200
SAMPLE_TEMPERATURE = 0.8  # as in nanoGPT


class Validator:
    """The validation of a run, which evaluates the model between steps and saves the best one.

    Args:
        run: The folder of the run.
        dataset: The dataset with the validation examples.
        length: The largest number of tokens that the model reads at once.
        config: The settings of the training.
        steps: The number of steps of the run.
        log: Writes an entry to the log.
        report: Called with each event.
    """

    def __init__(
        self,
        run: RunFolder,
        dataset: Dataset,
        length: int,
        config: TrainingConfig,
        steps: int,
        log: Callable[..., None],
        report: Report,
    ) -> None:
        self.run, self.dataset, self.config, self.steps = run, dataset, config, steps
        self.log, self.report = log, report
        self.batches = dataset.validation_batches(length, **config.batching)
        self.examples = dataset.translations[: config.bleu_sentences]
        self.prompt = list(dataset.prompt)[:length]
        first = config.lengthened_after or 0  # earlier snapshots belong to the previous end
        self.snapshots = Snapshots(run, config.average_last, first) if config.average_last else None
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
            score = greedy_bleu(model, self.examples, self.dataset.codecs["target"])
            self.log(step=step, valid_bleu=score, sentences=len(self.examples))
            self.report(Scored(step, score, len(self.examples)))
        if self.snapshots is not None:
            if step % config.average_every == 0:
                self.snapshots.take(checkpoint())
            if step == self.steps:
                self._average(step)

    def bits_per_character(self, loss: float) -> float | None:
        """Return the bits that the model needs for a character of a text, or None for sentences."""
        ratio = self.dataset.tokens_per_character
        return None if ratio is None else loss * ratio / math.log(2)

    def _is_due(self, step: int, every: int | None) -> bool:
        return every is not None and (step == self.steps or step % every == 0)

    def _validate(self, step: int, model: Any, checkpoint: Callable[[], Checkpoint]) -> None:
        """Evaluate the model, and save it if it is the best so far."""
        loss, accuracy, _, objective = evaluate(model, self.batches)
        best = self._is_best(objective)
        bits = self.bits_per_character(loss)
        measured = {} if bits is None else {"valid_bits_per_character": bits}
        self.log(
            step=step,
            valid_loss=loss,
            valid_accuracy=accuracy,
            valid_objective=objective,
            best=best,
            **measured,
        )
        self.report(Validated(step, loss, accuracy, best, bits))
        if best:
            self._save_best(checkpoint(), objective)
        if self.prompt:
            text = sample_text(model, self.dataset.codecs["text"], self.prompt, self.config.seed, step)
            self.report(Sampled(step, text))

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


def sample_text(model: Any, codec: AnyCodec, prompt: Sequence[int], seed: int, step: int) -> str:
    """Return the text of a prompt and of the tokens that a language model draws after it.

    Args:
        model: The language model.
        codec: The codec of its tokens.
        prompt: The first tokens of the text.
        seed: The seed of the run. With the step, it determines the draws.
        step: The number of complete steps.
    """
    # the windows of a text have the generators [seed, batch, step, 1]
    rng = np.random.default_rng([seed, 0, step, 2])
    drawn = sample_ids(model, [prompt], SAMPLE_TOKENS, temperature=SAMPLE_TEMPERATURE, rng=rng)
    return codec.decode([*prompt, *(int(tokens[0]) for tokens in drawn)])


def greedy_bleu(model: Any, examples: Sequence[Example], codec: AnyCodec) -> float:
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
