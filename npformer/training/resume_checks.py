"""Checks before a run begins or resumes that model, dataset, settings and checkpoint belong together."""

from typing import Any

from npformer.data.codecs import codec_from_json
from npformer.data.dataset import Dataset
from npformer.data.loader import DataLoader
from npformer.data.vocabulary import END, PAD, START, Vocabulary
from npformer.errors import UserError
from npformer.models.registry import ModelConfig, config_from_checkpoint, kind_of
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.training.config import TrainingConfig
from npformer.training.optimizer import first_decay
from npformer.training.run_folder import RunFolder

# settings that may change when a run resumes
CHANGEABLE = {"validate_every", "checkpoint_every", "log_every", "bleu_every", "bleu_sentences"}
LENGTHS = {"steps", "epochs"}  # these may change as well, if no learning rate so far depends on them


def check_fits(dataset: Dataset, config: ModelConfig) -> None:
    """Check that a model's vocabularies and its longest sentence fit a dataset.

    Raises:
        UserError: If they do not.
    """
    for side, codec in (("source", dataset.source), ("target", dataset.target)):
        size = getattr(config, f"{side}_vocab")
        if size != len(codec.vocabulary):
            raise UserError(
                f"{side}_vocab is {size}, but the dataset's {side} vocabulary has {len(codec.vocabulary)} "
                "words: build the configuration with **dataset.sizes"
            )
    if (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
        raise UserError(
            f"pad_id, start_id and end_id are {config.pad_id}, {config.start_id} and {config.end_id}: "
            f"the vocabularies have them at {PAD}, {START} and {END}"
        )
    longest = dataset.max_length
    if longest > config.max_length:
        raise UserError(
            f"the longest sentence has {longest} tokens, and the model's max_length is {config.max_length}: "
            "raise it, or leave out longer sentences with the dataset's max_length"
        )


def check_same_run(
    checkpoint: Checkpoint, dataset: Dataset, model_config: ModelConfig, config: TrainingConfig
) -> None:
    """Check that a run resumes with the settings, vocabularies and sentences of its checkpoint.

    Args:
        checkpoint: The last checkpoint of the run.
        dataset: The sentences to train on.
        model_config: The configuration of the model.
        config: The settings of the training.

    Raises:
        UserError: If anything differs. The message names the first difference.
    """
    saved, current = checkpoint.model_kind, kind_of(model_config)
    if saved != current:
        raise UserError(
            f"the model is of the kind {current} here but {saved} in the checkpoint: continue with {saved}, "
            "or start a new run in another folder"
        )
    changeable = CHANGEABLE | LENGTHS if _length_may_change(checkpoint, dataset, config) else CHANGEABLE
    _compare(config_from_checkpoint(checkpoint).to_dict(), model_config.to_dict(), set())
    _compare(TrainingConfig(**checkpoint.training_settings).to_dict(), config.to_dict(), changeable)
    _compare_vocabularies(
        "source", codec_from_json(checkpoint.source_codec).vocabulary, dataset.source.vocabulary
    )
    _compare_vocabularies(
        "target", codec_from_json(checkpoint.target_codec).vocabulary, dataset.target.vocabulary
    )
    if checkpoint.fingerprint != dataset.fingerprint:
        raise UserError(
            f"the sentences are not those of the checkpoint ({describe(checkpoint.dataset)}): they have "
            "changed since, so restore them, or start a new run"
        )


def load_last(run: RunFolder) -> Checkpoint:
    """Return the last checkpoint of a run.

    Raises:
        UserError: If there is none, it is broken, or no run can continue from it. The message says what to
            do.
    """
    try:
        last = load_checkpoint(run.last)
    except UserError as error:
        try:
            best = load_checkpoint(run.best)
        except UserError:
            raise error from None
        if best.m is None:  # an average
            raise
        raise UserError(
            f"{error}; {run.best}, of step {best.step}, is intact: copy it to {run.last} to continue"
        ) from None
    if last.m is None:
        raise UserError(f"{run.last} is an average: without Adam's moments, training cannot continue from it")
    return last


def _length_may_change(checkpoint: Checkpoint, dataset: Dataset, config: TrainingConfig) -> bool:
    """Return whether a run with the new number of steps has the same learning rates up to the checkpoint."""
    if config.schedule == "cosine":
        return False
    saved = TrainingConfig(**checkpoint.training_settings)
    if config.decay_share == 0:
        return True
    totals = [
        each.total_steps(DataLoader(dataset.train, dataset.train_lengths, **each.batching))
        for each in (saved, config)
    ]
    return checkpoint.step <= min(first_decay(steps, config.decay_share) for steps in totals)


def describe(dataset: dict[str, Any]) -> str:
    """Return the description of a dataset as a short text."""
    return ", ".join(f"{name} {value}" for name, value in dataset.items() if value is not None)


def _compare(saved: dict[str, Any], current: dict[str, Any], changeable: set[str]) -> None:
    for name, value in saved.items():
        if name not in changeable and current[name] != value:
            raise UserError(
                f"{name} is {current[name]} here but {value} in the checkpoint: continue with {value}, or "
                "start a new run in another folder"
            )


def _compare_vocabularies(side: str, saved: Vocabulary, current: Vocabulary) -> None:
    if saved == current:
        return
    pairs = zip(saved.words, current.words, strict=False)
    index = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(saved), len(current)))
    here, there = (repr(v.words[index]) if index < len(v) else "nothing" for v in (current, saved))
    raise UserError(
        f"word {index} of the {side} vocabulary is {here} here but {there} in the checkpoint: "
        "continue with the data that it was trained on, or start a new run in another folder"
    )
