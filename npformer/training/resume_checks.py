"""Checks before a run begins or resumes that model, dataset, settings and checkpoint belong together."""

from typing import Any

from npformer.data.base_dataset import Dataset
from npformer.data.codecs import read_codecs
from npformer.errors import UserError, quantity
from npformer.models.registry import ModelConfig, config_from_checkpoint, kind_of
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.training.config import TrainingConfig, make_schedule
from npformer.training.run_folder import RunFolder

# settings that may change when a run resumes
CHANGEABLE = {"validate_every", "checkpoint_every", "log_every", "bleu_every", "bleu_sentences"}
LENGTH = {"steps", "epochs", "lengthened_after"}  # checked by _with_new_length


def check_settings(
    run: RunFolder,
    checkpoint: Checkpoint | None,
    dataset: Dataset,
    model_config: ModelConfig,
    config: TrainingConfig,
) -> TrainingConfig:
    """Check the settings of a run, and return those with which it begins or continues.

    Args:
        run: The folder of the run.
        checkpoint: The last checkpoint of the run, or None if it begins.
        dataset: The dataset to train on.
        model_config: The configuration of the model.
        config: The settings of the training.

    Raises:
        UserError: If the run cannot begin or continue with them.
    """
    if checkpoint is not None:
        config = _with_new_length(checkpoint, dataset, model_config, config, run.resume_command)
        _check_same_run(checkpoint, dataset, model_config, config)
    elif config.lengthened_after is not None:
        raise UserError(
            f"lengthened_after is {config.lengthened_after}: a new run has no earlier end, so leave it out"
        )
    return config


def _with_new_length(
    checkpoint: Checkpoint,
    dataset: Dataset,
    model_config: ModelConfig,
    config: TrainingConfig,
    resume_command: str,
) -> TrainingConfig:
    """Return the settings with which a run continues that was given another length.

    If every learning rate so far is the same in a run of the new length, the run continues as such a run. If
    not, only a run that has ended can be made longer: its learning rate decays anew, in the steps after the
    end (see `make_schedule`).

    Raises:
        UserError: If the run has more steps already, or cannot change its length before its end.
    """
    saved = TrainingConfig.from_checkpoint(checkpoint)
    config = config.replace(lengthened_after=saved.lengthened_after)
    if (saved.steps, saved.epochs) == (config.steps, config.epochs):
        return config
    before, now = (
        each.total_steps(dataset.loader(model_config.max_length, **each.batching)) for each in (saved, config)
    )
    made = checkpoint.step
    if now < made or now == made < before:  # without a last step, there is no last validation
        raise UserError(
            f"the run has made {quantity(made, 'step')} already, so its length cannot become {now:,}: give a "
            "larger number"
        )
    one, other = make_schedule(saved, 1, before), make_schedule(config, 1, now)
    if all(one(step) == other(step) for step in range((saved.lengthened_after or 0) + 1, made + 1)):
        return config
    if made < before:
        raise UserError(
            f"the learning rate of this run decays up to step {before:,} and the run is at step {made:,}, so "
            f"its length cannot become {now:,} now: finish it with {resume_command}, and make it longer then"
        )
    return config.replace(lengthened_after=made)


def _check_same_run(
    checkpoint: Checkpoint, dataset: Dataset, model_config: ModelConfig, config: TrainingConfig
) -> None:
    """Check that a run resumes with the settings, vocabularies and data of its checkpoint.

    Raises:
        UserError: If anything differs. The message names the first difference.
    """
    saved, current = checkpoint.model_kind, kind_of(model_config)
    if saved != current:
        raise UserError(
            f"the model is of the kind {current} here but {saved} in the checkpoint: continue with {saved}, "
            "or start a new run in another folder"
        )
    _compare(config_from_checkpoint(checkpoint).to_dict(), model_config.to_dict(), set())
    _compare(TrainingConfig.from_checkpoint(checkpoint).to_dict(), config.to_dict(), CHANGEABLE | LENGTH)
    if checkpoint.codecs.keys() != dataset.codecs.keys():
        raise UserError(
            f"the data are {dataset.contents} here, and other data in the checkpoint: continue with the data "
            "that it was trained on, or start a new run in another folder"
        )
    for role, codec in read_codecs(checkpoint).items():
        _compare_tokens(role, codec.tokens, dataset.codecs[role].tokens)
    if checkpoint.fingerprint != dataset.fingerprint:
        raise UserError(
            f"the data are not those of the checkpoint ({describe(checkpoint.dataset)}): they have changed "
            "since, so restore them, or start a new run"
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


def _compare_tokens(role: str, saved: tuple[str, ...], current: tuple[str, ...]) -> None:
    """Raise UserError if the tokens of two codecs differ, with the first difference."""
    if saved == current:
        return
    pairs = zip(saved, current, strict=False)
    index = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(saved), len(current)))
    here, there = (repr(each[index]) if index < len(each) else "nothing" for each in (current, saved))
    raise UserError(
        f"token {index} of the {role} vocabulary is {here} here but {there} in the checkpoint: "
        "continue with the data that it was trained on, or start a new run in another folder"
    )
