"""The template of a model card: what a run knows is filled in, and its owner writes the rest."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from npformer.data.codecs import codecs_from_checkpoint
from npformer.errors import UserError
from npformer.generation.search import BEAM, LENGTH_PENALTY
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import Checkpoint
from npformer.training import read_log

TO_WRITE = "TO WRITE:"  # begins what the owner of a card must replace

_LANGUAGES = {"en": "English", "de": "German", "fr": "French"}

# the settings that describe a model and a training, those of them that there are
_OF_MODEL = (
    "attention",
    "n_layers",
    "d_model",
    "d_ff",
    "d_hidden",
    "n_heads",
    "norm",
    "dropout",
    "label_smoothing",
)
_OF_TRAINING = (
    "batch_size",
    "batch_tokens",
    "optimizer",
    "schedule",
    "learning_rate",
    "min_learning_rate",
    "warmup_steps",
    "decay_share",
    "weight_decay",
    "clip_norm",
    "r_drop",
    "seed",
)


def card_template(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    """Return the content of a model card with what is known, and TO_WRITE where the owner has to write.

    Args:
        checkpoint: The checkpoint that will be exported.
        folder: The folder of its run, whose log tells how long the training took.
    """
    return {
        "title": _title(checkpoint),
        "data": f"{TO_WRITE} what the text is and where it comes from ({_describe(checkpoint.dataset)})",
        "licence": f"{TO_WRITE} the licence of the text, and what follows from it for these weights",
        "training": _training(checkpoint),
        "command": _command(checkpoint),
        "hours": _hours(folder),
        "machine": f"{TO_WRITE} the processor and the number of its cores, or the GPU",
        "date": date.today().isoformat(),
        "example": f"{TO_WRITE} a sentence to try, or nothing between the quotation marks",
        "beam": BEAM,
        "length_penalty": LENGTH_PENALTY,
        "comparison": f"{TO_WRITE} published scores of other models, or nothing between the quotation marks",
        "limits": [],
    }


def require_filled_in(content: Mapping[str, Any], path: Path) -> None:
    """Check that the owner of a card has written everything that the template left open.

    Raises:
        UserError: If an entry still has TO_WRITE in it.
    """
    left = [name for name, value in content.items() if isinstance(value, str) and TO_WRITE in value]
    if left:
        raise UserError(
            f"{path} has {TO_WRITE} in {', '.join(left)}: replace these words and what follows them, then "
            "export again"
        )


def _title(checkpoint: Checkpoint) -> str:
    """Return "English to German", if both languages are known."""
    codecs = codecs_from_checkpoint(checkpoint)
    source, target = (_LANGUAGES.get(codec.language.name) for codec in codecs)
    return f"{source} to {target}" if source and target else f"{TO_WRITE} a title, as in English to German"


def _training(checkpoint: Checkpoint) -> str:
    """Return a description of the model and of its training."""
    model, training = checkpoint.model_settings, checkpoint.training_settings
    parts = [
        f"{checkpoint.model_kind} with {model_from_checkpoint(checkpoint).count_parameters():,} parameters",
        *_chosen(model, _OF_MODEL),
        f"{checkpoint.step:,} steps",
        *_chosen(training, _OF_TRAINING),
    ]
    if checkpoint.m is None:
        parts.append(f"average of the last {training['average_last']} snapshots")
    return ", ".join(parts)


def _chosen(settings: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """Return texts "name value" of the settings that are given."""
    return [f"{name} {settings[name]}" for name in names if settings.get(name) not in (None, 0)]


def _command(checkpoint: Checkpoint) -> str:
    """Return the beginning of the command that trained the model, as far as the checkpoint tells."""
    data, rest = checkpoint.dataset, f"{TO_WRITE} the other options of the command, if it had any"
    if data.get("kind") == "files":
        return f"npformer train {data['source']} {data['target']} {rest}"
    return f"{TO_WRITE} the command that trained it"


def _hours(folder: Path) -> float | str:
    """Return the hours that the training took, with two digits."""
    try:
        log = read_log(folder)
    except UserError:  # a checkpoint that was copied elsewhere
        log = []
    if not log:
        return f"{TO_WRITE} the hours of training, a number without quotation marks"
    return float(f"{max(log[-1]['seconds'], 1) / 3600:.2g}")


def _describe(dataset: Mapping[str, Any]) -> str:
    """Return the description of a dataset as a short text."""
    return ", ".join(f"{name} {value}" for name, value in dataset.items() if value is not None) or "unknown"
