"""The trained models of the lessons.

The translator of chapters 13 and 15 is trained once in a folder and later loaded from there. The translator
of chapter 14 is trained for a few seconds in each lesson.
"""

from os import PathLike
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from npformer.data import Vocabulary, make_batch, tokenize
from npformer.data.corpus.plain import draw_plain
from npformer.data.dataset import Dataset, builtin_dataset
from npformer.data.loader import Example
from npformer.errors import UserError
from npformer.models.registry import config_from_checkpoint
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.training import RunFolder, TrainingConfig, loss_and_gradients, train
from npformer.training.events import Report
from npformer.training.optimizer import Adam
from npformer.training.presets import find_preset

FOLDER = Path("runs/lesson13")  # below the working directory


class LessonTraining(NamedTuple):
    """The arguments of `train` after the folder, in order."""

    dataset: Dataset
    model: TransformerConfig
    training: TrainingConfig


def lesson_recipe() -> LessonTraining:
    """Return the built-in corpus and settings that learn it in less than a minute on one core.

    The preset "small" takes three times as long. This model is narrower, and its batches have half as many
    sentences. There is no dropout, because a model does not overfit in 2.4 passes through the corpus. The
    norm comes after the residual connection, as in the paper and in the figures of trained models. With this
    seed, one head of the encoder attends most to the noun to which *it* refers in three quarters of the
    sentences. The best heads of the seeds 0 to 8 do so in 38 to 77 % of them.
    """
    dataset = builtin_dataset()
    small = {"d_model": 64, "d_ff": 128, "norm": "post", "final_norm": False, "dropout": 0.0}
    model = TransformerConfig.architecture("small", **(dataset.sizes | small))
    training = find_preset("small").training.replace(
        steps=2200,
        batch_size=32,
        learning_rate=4e-3,
        warmup_steps=220,
        seed=7,
        validate_every=200,
        checkpoint_every=2200,
    )
    return LessonTraining(dataset, model, training)


def prepare(folder: str | PathLike[str], recipe: LessonTraining) -> bool:
    """Return False if the folder holds a finished run of this recipe. Otherwise remove other runs from it.

    Raises:
        UserError: If a file cannot be removed.
    """
    run = RunFolder(folder)
    if _is_finished(run, recipe):
        return False
    for path in (run.last, run.best, run.log):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"{path} cannot be removed ({error.strerror}): go to a folder that may be written to"
            ) from None
    return True


def trained(
    folder: str | PathLike[str] = FOLDER,
    *,
    recipe: LessonTraining | None = None,
    report: Report | None = None,
) -> Checkpoint:
    """Return the best checkpoint of the run in a folder. If there is no such run, train it first.

    Args:
        folder: The folder of the run.
        recipe: The dataset and the settings. The default is `lesson_recipe`.
        report: Is called with the events of the training.

    Raises:
        UserError: As for `train`.
        KeyboardInterrupt: If Ctrl-C stopped the training.
    """
    recipe = lesson_recipe() if recipe is None else recipe
    if prepare(folder, recipe):
        # the lesson describes a model that is fully trained
        train(folder, *recipe, threads=1, report=report).require_finished()
    return load_checkpoint(RunFolder(folder).best)


def _is_finished(run: RunFolder, recipe: LessonTraining) -> bool:
    """Return whether the last checkpoint is the recipe's last step and the best one can be read."""
    try:
        last = load_checkpoint(run.last)
        load_checkpoint(run.best)
    except UserError:  # missing or damaged
        return False
    settings = (config_from_checkpoint(last), TrainingConfig.from_checkpoint(last))
    same = settings == (recipe.model, recipe.training)
    return same and last.step == recipe.training.steps and last.fingerprint == recipe.dataset.fingerprint


class PartlyTrained(NamedTuple):
    """A translator from French to English after a short training, and its data."""

    model: Transformer
    french: Vocabulary
    english: Vocabulary
    train: list[Example]
    test: list[Example]


def partly_trained(steps: int = 400) -> PartlyTrained:
    """Train a small translator for a few seconds, so briefly that it still makes mistakes.

    It is trained on 2,000 pairs of plain sentences with at most seven English words, and tested on 300
    others. The model computes in float64. Rounding differs from machine to machine, and in float64 it is so
    small that every machine chooses the same tokens.

    Args:
        steps: The number of training steps.
    """
    rng = Random(14)
    pairs: dict[str, tuple[list[str], list[str]]] = {}  # each French sentence once
    while len(pairs) < 2300:
        pair = draw_plain(rng)
        french, english = tokenize(pair.french, elision=True), tokenize(pair.english)
        if len(english) <= 7:
            pairs[" ".join(french)] = french, english
    source = Vocabulary.from_sentences(french for french, _ in pairs.values())
    target = Vocabulary.from_sentences(english for _, english in pairs.values())
    examples: list[Example] = [
        (source.encode(french), target.encode(english)) for french, english in pairs.values()
    ]
    learned, test = examples[:-300], examples[-300:]

    config = TransformerConfig.architecture("small", d_model=32, d_ff=64, n_heads=2, n_layers=1)
    config = config.replace(source_vocab=len(source), target_vocab=len(target), max_length=130)
    config = config.replace(dropout=0.0, label_smoothing=0.0)
    model = Transformer(config, rng=np.random.default_rng(0), dtype=np.float64)
    adam, order = Adam(model, eps=1e-8), np.random.default_rng(1)
    for step in range(1, steps + 1):
        batch = make_batch([learned[i] for i in order.integers(0, len(learned), 32)])
        loss_and_gradients(model, [batch])
        adam.step(5e-3 * min(step / 20, 1))  # a warm-up of 20 steps
    return PartlyTrained(model, source, target, learned, test)
