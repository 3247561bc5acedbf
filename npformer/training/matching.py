"""Whether a checkpoint belongs to the run that is to go on from it."""

from typing import Any

from npformer.data.batches import example_lengths
from npformer.data.datasets import Dataset
from npformer.data.vocabulary import END, PAD, START, Vocabulary
from npformer.errors import UserError
from npformer.models import ModelConfig, kind_of
from npformer.training.checkpoint import Checkpoint
from npformer.training.config import TrainingConfig

# what may change when a run goes on; under a cosine, the number of steps is part of the schedule
CHANGEABLE = {"validate_every", "checkpoint_every", "log_every"}
LENGTHS = {"steps", "epochs"}


def check_fits(dataset: Dataset, config: ModelConfig) -> None:
    """Refuse a model whose vocabularies or longest sentence are not the dataset's."""
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
    longest = int(example_lengths([*dataset.train, *dataset.valid]).max())
    if longest > config.max_length:
        raise UserError(
            f"the longest sentence has {longest} tokens, and the model's max_length is {config.max_length}: "
            "raise it, or leave out longer sentences with the dataset's max_length"
        )


def check_same_run(
    checkpoint: Checkpoint, dataset: Dataset, model_config: ModelConfig, config: TrainingConfig
) -> None:
    """Refuse to go on with other settings, vocabularies or sentences than the checkpoint's.

    Errors: UserError that names the first thing that differs.
    """
    saved, asked = kind_of(checkpoint.model_config), kind_of(model_config)
    if saved != asked:
        raise UserError(
            f"the model is a {asked} one here and a {saved} one in the checkpoint: go on with that, or start "
            "a new run in another folder"
        )
    changeable = CHANGEABLE if config.schedule == "cosine" else CHANGEABLE | LENGTHS
    _compare(checkpoint.model_config.to_dict(), model_config.to_dict(), set())
    _compare(checkpoint.training_config.to_dict(), config.to_dict(), changeable)
    _compare_words("source", checkpoint.source.vocabulary, dataset.source.vocabulary)
    _compare_words("target", checkpoint.target.vocabulary, dataset.target.vocabulary)
    if checkpoint.fingerprint != dataset.fingerprint:
        raise UserError(
            f"the sentences are not those of the checkpoint ({describe(checkpoint.dataset)}): they have "
            "changed since, so give them as they were, or start a new run"
        )


def describe(dataset: dict[str, Any]) -> str:
    """A dataset's description in a few words."""
    return ", ".join(f"{name} {value}" for name, value in dataset.items() if value is not None)


def _compare(saved: dict[str, Any], asked: dict[str, Any], changeable: set[str]) -> None:
    for name, value in saved.items():
        if name not in changeable and asked[name] != value:
            raise UserError(
                f"{name} is {asked[name]} here but {value} in the checkpoint: go on with {value}, or start "
                "a new run in another folder"
            )


def _compare_words(side: str, saved: Vocabulary, asked: Vocabulary) -> None:
    if saved == asked:
        return
    pairs = zip(saved.words, asked.words, strict=False)
    index = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(saved), len(asked)))
    here, there = (repr(v.words[index]) if index < len(v) else "nothing" for v in (asked, saved))
    raise UserError(
        f"word {index} of the {side} vocabulary is {here} here but {there} in the checkpoint: "
        "go on with the data it was trained on, or start a new run in another folder"
    )
