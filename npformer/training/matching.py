"""Whether a checkpoint belongs to the run that is to go on from it."""

from typing import Any

from npformer.data.batches import example_lengths
from npformer.data.datasets import Dataset
from npformer.data.vocabulary import END, PAD, START, Vocabulary
from npformer.errors import UserError
from npformer.models import ModelConfig, kind_of
from npformer.optim import first_decay
from npformer.training.checkpoint import Checkpoint, load_checkpoint
from npformer.training.config import TrainingConfig
from npformer.training.run import RunFolder
from npformer.training.stream import count_steps

# what may change when a run goes on
CHANGEABLE = {"validate_every", "checkpoint_every", "log_every", "bleu_every", "bleu_sentences"}
LENGTHS = {"steps", "epochs"}  # and these, while no learning rate depended on them


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
    changeable = CHANGEABLE | LENGTHS if _length_may_change(checkpoint, dataset, config) else CHANGEABLE
    _compare(checkpoint.model_config.to_dict(), model_config.to_dict(), set())
    _compare(checkpoint.training_config.to_dict(), config.to_dict(), changeable)
    _compare_words("source", checkpoint.source.vocabulary, dataset.source.vocabulary)
    _compare_words("target", checkpoint.target.vocabulary, dataset.target.vocabulary)
    if checkpoint.fingerprint != dataset.fingerprint:
        raise UserError(
            f"the sentences are not those of the checkpoint ({describe(checkpoint.dataset)}): they have "
            "changed since, so give them as they were, or start a new run"
        )


def load_last(run: RunFolder) -> Checkpoint:
    """A run's last checkpoint; UserError where there is none or it is broken, with what may help."""
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
            f"{error}; {run.best}, of step {best.step}, is whole: copy it to {run.last} to go on from there"
        ) from None
    if last.m is None:
        raise UserError(f"{run.last} is an average: it can translate, but without Adam's moments not go on")
    return last


def _length_may_change(checkpoint: Checkpoint, dataset: Dataset, config: TrainingConfig) -> bool:
    """Whether every learning rate until now would have been the same in a run of the other length."""
    if config.schedule == "cosine":
        return False
    lengths = (count_steps(dataset.train, each) for each in (checkpoint.training_config, config))
    return config.decay_share == 0 or checkpoint.step <= min(
        first_decay(steps, config.decay_share) for steps in lengths
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
