"""The trained models of the lessons, and the settings of the tour's translator.

The translator of chapters 13 and 15 is trained once in a folder and later loaded from there. The translator
of chapter 14 and the GPTs of chapters 24 and 25 are trained for a few seconds in each lesson.
"""

from collections import Counter
from functools import cache
from itertools import islice
from os import PathLike
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from npformer.data import Vocabulary, make_batch, tokenize
from npformer.data.corpus import builtin_corpus
from npformer.data.corpus.simple import draw_simple
from npformer.data.dataset import PairDataset, builtin_dataset
from npformer.data.loader import Example
from npformer.data.subwords import WORD_BEGIN
from npformer.data.text import TextDataset, text_dataset
from npformer.data.text_codecs import LINE_END, PieceCodec
from npformer.errors import UserError
from npformer.learn.course.short_sentences import learn_subwords
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.registry import config_from_checkpoint
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.training import RunFolder, TrainingConfig, loss_and_gradients, train
from npformer.training.events import Report
from npformer.training.optimizer import Adam, cosine
from npformer.training.presets import find_preset
from npformer.training.step import make_step

FOLDER = Path("runs/lesson13")  # below the working directory


class LessonTraining(NamedTuple):
    """The arguments of `train` after the folder, in order."""

    dataset: PairDataset
    model: TransformerConfig
    training: TrainingConfig


@cache
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


def tour_recipe(seed: int = 0) -> LessonTraining:
    """Return the built-in corpus and the settings of the preset "small", with which the tour trains.

    Args:
        seed: The seed of weights, order and dropout.
    """
    dataset, preset = builtin_dataset(), find_preset("small")
    model = TransformerConfig.architecture("small", **dataset.sizes)
    return LessonTraining(dataset, model, preset.training.replace(seed=seed))


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
    return last.step == recipe.training.steps and is_of_recipe(last, recipe)


def is_of_recipe(checkpoint: Checkpoint, recipe: LessonTraining) -> bool:
    """Return whether a training with these settings on this dataset made the checkpoint, at any step."""
    settings = (config_from_checkpoint(checkpoint), TrainingConfig.from_checkpoint(checkpoint))
    same = settings == (recipe.model, recipe.training)
    return same and checkpoint.fingerprint == recipe.dataset.fingerprint


class PartlyTrained(NamedTuple):
    """A translator from French to English after a short training, and its data."""

    model: Transformer
    french: Vocabulary
    english: Vocabulary
    train: list[Example]
    test: list[Example]


def partly_trained(steps: int = 400) -> PartlyTrained:
    """Train a small translator for a few seconds, so briefly that it still makes mistakes.

    It is trained on 2,000 pairs of simple sentences with at most seven English words, and tested on 300
    others. The model computes in float64. Rounding differs from machine to machine, and in float64 it is so
    small that every machine chooses the same tokens.

    Args:
        steps: The number of training steps.
    """
    rng = Random(14)
    pairs: dict[str, tuple[list[str], list[str]]] = {}  # each French sentence once
    while len(pairs) < 2300:
        pair = draw_simple(rng)
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


class ShortGPT(NamedTuple):
    """A small GPT after a short training, and its data."""

    model: GPT
    dataset: TextDataset
    losses: list[float]  # the loss of each step, in nats per token


def short_gpt(steps: int = 400) -> ShortGPT:
    """Train a small GPT for a few seconds. It learns the most frequent words, and the form of the plays.

    The model has the parts of Llama and two layers, and reads 32 characters of Tiny Shakespeare at a time.

    Args:
        steps: The number of training steps.
    """
    dataset = text_dataset()
    sizes = {"d_model": 64, "d_ff": 170, "n_layers": 2, "context": 32}
    config = GPTConfig.preset("gpt-shakespeare", **(sizes | dataset.sizes))
    return _train_briefly(config, dataset, steps, 6e-3)


def short_gpt2(steps: int = 400) -> ShortGPT:
    """Train a small GPT with the parts of GPT-2 for a few seconds. It learns when *it* and *they* are used.

    The model has two layers, and reads 16 tokens of the text of `pronoun_dataset` at a time.

    Args:
        steps: The number of training steps.
    """
    dataset = pronoun_dataset()
    config = GPTConfig(d_model=64, n_layers=2, n_heads=4, context=16).replace(**dataset.sizes)
    return _train_briefly(config, dataset, steps, 1e-2)


def pronoun_dataset() -> TextDataset:
    """Return the English sentences with *it* or *they* of the built-in corpus as one text, one in each line.

    Each word is one token, since the codec makes as many subwords as it can. A word that is not in the
    training text is split into characters.
    """
    parts = [
        [pair.english for pair in pairs if pair.family == "it"]
        for pairs in (builtin_corpus().train, builtin_corpus().valid)
    ]
    counts = Counter(word for line in parts[0] for word in line.split())
    characters = sorted({character for word in counts for character in WORD_BEGIN + word})
    n_pairs = sum(len(word) for word in counts)  # more than there are pairs to join
    subwords = dict.fromkeys([*learn_subwords(counts, n_pairs), *characters])
    codec = PieceCodec((LINE_END, *subwords))
    texts = [LINE_END.join(lines) for lines in parts]
    train_ids, valid_ids = (np.array(codec.encode(text)) for text in texts)
    return TextDataset(train_ids, valid_ids, codec, len(texts[1]), name="the sentences with it or they")


def _train_briefly(config: GPTConfig, dataset: TextDataset, steps: int, learning_rate: float) -> ShortGPT:
    """Train a GPT on a text, with 32 windows for each step.

    Args:
        config: The model.
        dataset: The text.
        steps: The number of training steps.
        learning_rate: The largest learning rate.
    """
    model = GPT(config, rng=np.random.default_rng(0))
    adam, rate = Adam(model, betas=(0.9, 0.99)), cosine(learning_rate, steps + 1, steps // 10)
    losses = []
    batches_of_steps = dataset.loader(config.context, batch_size=32).steps()
    for step, batches in enumerate(islice(batches_of_steps, steps), 1):
        losses.append(make_step(model, adam, batches, None, rate(step), 1.0)[0])
    return ShortGPT(model, dataset, losses)
