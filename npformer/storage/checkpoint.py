"""The checkpoint format: the whole state of a training run in one safetensors file with a checksum.

The file holds every parameter under its dotted name and Adam's two moments. An average of checkpoints has no
moments, since no run can resume from it. The metadata are one JSON text with all settings, the vocabularies
and the step.
Random states are not stored, because they follow from the seed and the step.

This module reads and writes arrays and plain values. It builds no model: `models.registry` makes a model
from a checkpoint, and `generation.Translator.from_checkpoint` makes a translator.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.errors import UserError
from npformer.storage.atomic import write_atomically
from npformer.storage.checksummed import checksummed_bytes, read_checksummed
from npformer.storage.old_names import rename_parameters, rename_settings

FORMAT = 1  # increases when a new version can no longer read files of the version before


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The content of a checkpoint file: everything that resuming a run needs, and that translating needs."""

    step: int
    best_loss: float | None  # the lowest validation objective so far
    model_kind: str  # "transformer" or "recurrent", see models.registry
    model_settings: dict[str, Any]
    training_settings: dict[str, Any]
    source_codec: str  # JSON text, see data.codecs
    target_codec: str
    dataset: dict[str, Any]  # the description from which open_dataset makes the dataset again
    fingerprint: str  # of the dataset
    backend: str  # like the numbers of threads, workers and ranks, it determines the last bits of a sum
    threads: int | None
    workers: int
    ranks: int
    parameters: dict[str, np.ndarray]
    m: np.ndarray | None  # (P,) Adam's moments; None if training cannot continue from this checkpoint
    v: np.ndarray | None  # (P,)


def save_checkpoint(checkpoint: Checkpoint, path: str | PathLike[str]) -> None:
    """Write a checkpoint so that a crash at any instant leaves either the previous file or the new one.

    The same state gives the same bytes.

    Raises:
        UserError: If the disk is full or cannot be written. The previous file is then untouched.
    """
    data = _to_bytes(checkpoint)
    try:
        write_atomically(Path(path), data)
    except OSError as error:
        megabytes = -(-len(data) // 100_000) / 10  # rounded up
        raise UserError(
            f"the checkpoint of step {checkpoint.step} could not be written to {path} ({error.strerror}), "
            f"and the previous file is untouched: free {megabytes:.1f} MB of space, then resume"
        ) from None


def load_checkpoint(path: str | PathLike[str]) -> Checkpoint:
    """Read a file that save_checkpoint wrote.

    Raises:
        UserError: If the file is missing, cut short, altered in any byte, of another kind, or in another
            version of the format.
    """
    tensors, settings = read_checksummed(path)
    if settings["format"] != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {settings['format']}, and this npformer reads format {FORMAT}: "
            "use the version of npformer that wrote it"
        )
    m, v = tensors.pop("adam.m", None), tensors.pop("adam.v", None)
    return Checkpoint(
        step=settings["step"],
        best_loss=settings["best_loss"],
        model_kind=settings.get("kind", "transformer"),
        model_settings=rename_settings(settings["model"]),
        training_settings=settings["training"],
        source_codec=settings["source"],
        target_codec=settings["target"],
        dataset=settings["dataset"],
        fingerprint=settings["fingerprint"],
        backend=settings["backend"],
        threads=settings["threads"],
        workers=settings.get("workers", 1),
        ranks=settings.get("ranks", 1),
        parameters=rename_parameters(tensors),
        m=m,
        v=v,
    )


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of the file, with its checksum."""
    settings = {
        "format": FORMAT,
        "step": checkpoint.step,
        "best_loss": checkpoint.best_loss,
        "kind": checkpoint.model_kind,
        "model": checkpoint.model_settings,
        "training": checkpoint.training_settings,
        "source": checkpoint.source_codec,
        "target": checkpoint.target_codec,
        "dataset": checkpoint.dataset,
        "fingerprint": checkpoint.fingerprint,
        "backend": checkpoint.backend,
        "threads": checkpoint.threads,
        "workers": checkpoint.workers,
        "ranks": checkpoint.ranks,
    }
    moments = {"adam.m": checkpoint.m, "adam.v": checkpoint.v}
    tensors = checkpoint.parameters | {name: moment for name, moment in moments.items() if moment is not None}
    return checksummed_bytes(tensors, settings)
