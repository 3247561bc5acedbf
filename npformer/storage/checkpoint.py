"""The checkpoint format: the whole state of a training run in one safetensors file with a checksum.

The file holds every parameter under its dotted name and Adam's two moments. An average of checkpoints has no
moments, since no run can resume from it. The metadata are one JSON text with all settings, the vocabularies
and the step.
Random states are not stored, because they follow from the seed and the step.

This module reads and writes arrays and JSON values. It builds no model: `models.registry` makes a model
from a checkpoint, and `pretrained.loaded.Translator.from_checkpoint` makes a translator.
"""

import math
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.errors import UserError
from npformer.storage.atomic import reason, write_atomically
from npformer.storage.checksummed import checksummed_bytes, read_checksummed
from npformer.storage.json_files import require_entries, require_version
from npformer.storage.old_names import rename_parameters, rename_settings
from npformer.validation import short

FORMAT = 1  # increases when an older npformer could no longer read a new file
REMEDY = "use another checkpoint"
MOST_PROCESSES = 10_000  # of threads, workers or ranks

# the entries of the metadata and their types
ENTRIES = {
    "sha256": str,
    "step": int,
    "best_loss": float | None,
    "model": dict,
    "training": dict,
    "dataset": dict,
    "fingerprint": str,
    "backend": str,
    "threads": int | None,
}
LATER_ENTRIES = {"format": int, "kind": str, "workers": int, "ranks": int}  # missing in the oldest files
# the roles of the codecs: of a translator, of a language model, or of a masked language model
CODECS = (("source", "target"), ("text",), ("sentences",))


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The content of a checkpoint file: everything that resuming a run or using its model needs."""

    step: int
    best_loss: float | None  # the lowest validation objective so far
    model_kind: str  # such as "transformer", see models.registry
    model_settings: dict[str, Any]
    training_settings: dict[str, Any]
    codecs: dict[str, str]  # by role, see CODECS: JSON texts, which data.codecs reads
    dataset: dict[str, Any]  # the description from which open_dataset makes the dataset again
    fingerprint: str  # of the dataset
    backend: str  # like the numbers of threads, workers and ranks, it determines the last bits of a sum
    threads: int | None
    workers: int
    ranks: int
    parameters: dict[str, np.ndarray]
    m: np.ndarray | None  # (P,) Adam's moments; None if training cannot continue from this checkpoint
    v: np.ndarray | None  # (P,)
    file: str = field(default="", compare=False)  # the file that it was read from, for messages

    @property
    def place(self) -> str:
        """The noun for messages, with the file or the step."""
        return f"the checkpoint {self.file}" if self.file else f"the checkpoint of step {self.step}"


def save_checkpoint(checkpoint: Checkpoint, path: str | PathLike[str]) -> None:
    """Write a checkpoint so that a crash at any instant leaves either the previous file or the new one.

    The same state gives the same bytes.

    Raises:
        UserError: If the disk is full or cannot be written. The previous file is then untouched.
    """
    data = _to_bytes(checkpoint)
    try:
        write_atomically(Path(path), data)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        megabytes = -(-len(data) // 100_000) / 10  # rounded up
        raise UserError(
            f"the checkpoint of step {checkpoint.step} could not be written to {path} ({reason(error)}), "
            f"and the previous file is untouched: free {megabytes:.1f} MB of space, then resume"
        ) from None


def load_checkpoint(path: str | PathLike[str]) -> Checkpoint:
    """Read a file that save_checkpoint wrote.

    Raises:
        UserError: If the file is missing, cut short, altered in any byte, of another kind or of a newer
            version of the format, or if an entry or an array has a wrong type.
    """
    tensors, settings = read_checksummed(path, remedy=REMEDY)
    what = f"the checkpoint {path}"
    require_version(settings, what, FORMAT)
    roles = next((roles for roles in CODECS if roles[0] in settings), CODECS[0])
    types = ENTRIES | dict.fromkeys(roles, str)
    require_entries(settings, types, what, REMEDY, optional=LATER_ENTRIES)
    _check_numbers(settings, what)
    m, v = tensors.pop("adam.m", None), tensors.pop("adam.v", None)
    _check_arrays(tensors, m, v, what)
    return Checkpoint(
        step=settings["step"],
        best_loss=settings["best_loss"],
        model_kind=settings.get("kind", "transformer"),
        model_settings=rename_settings(settings["model"]),
        training_settings=settings["training"],
        codecs={role: settings[role] for role in roles},
        dataset=settings["dataset"],
        fingerprint=settings["fingerprint"],
        backend=settings["backend"],
        threads=settings["threads"],
        workers=settings.get("workers", 1),
        ranks=settings.get("ranks", 1),
        parameters=rename_parameters(tensors),
        m=m,
        v=v,
        file=str(path),
    )


def check_floats(tensors: dict[str, np.ndarray], what: str) -> None:
    """Check that arrays have one floating-point type and only finite numbers.

    Args:
        tensors: The arrays by name.
        what: The noun for the file, with its name.

    Raises:
        UserError: If they do not.
    """
    if not tensors:
        raise UserError(f"{what} has no arrays: {REMEDY}")
    first = next(iter(tensors.values())).dtype
    for name, array in tensors.items():
        if array.dtype.kind != "f" or array.dtype != first:
            raise UserError(
                f"{name} in {what} has the type {array.dtype}, and all arrays must have one floating-point "
                f"type: {REMEDY}"
            )
        if not np.isfinite(array).all():
            raise UserError(f"{name} in {what} has numbers that are not finite: {REMEDY}")


def _check_numbers(settings: dict[str, Any], what: str) -> None:
    """Check the ranges of the numbers in the metadata."""
    limits = {"step": (0, 10**15)} | dict.fromkeys(("threads", "workers", "ranks"), (1, MOST_PROCESSES))
    for name, (least, most) in limits.items():
        value = settings.get(name)
        if value is not None and not least <= value <= most:
            raise UserError(
                f"the entry {name!r} of {what} is {short(value)}, not {least} to {most}: {REMEDY}"
            )
    if settings["best_loss"] is not None and not math.isfinite(settings["best_loss"]):
        raise UserError(f"'best_loss' in {what} is not finite: {REMEDY}")


def _check_arrays(
    tensors: dict[str, np.ndarray], m: np.ndarray | None, v: np.ndarray | None, what: str
) -> None:
    """Check the types of all arrays, and that Adam's moments have one number for each parameter."""
    if (m is None) != (v is None):
        raise UserError(f"{what} has only one of Adam's two moments: {REMEDY}")
    moments = {} if m is None or v is None else {"adam.m": m, "adam.v": v}
    check_floats(tensors | moments, what)
    size = sum(array.size for array in tensors.values())
    for name, moment in moments.items():
        if moment.shape != (size,):
            raise UserError(f"{name} in {what} has shape {moment.shape}, not {(size,)}: {REMEDY}")
    if v is not None and (v < 0).any():
        raise UserError(f"adam.v in {what} has numbers below 0: {REMEDY}")


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the bytes of the file, with its checksum."""
    settings = {
        "format": FORMAT,
        "step": checkpoint.step,
        "best_loss": checkpoint.best_loss,
        "kind": checkpoint.model_kind,
        "model": checkpoint.model_settings,
        "training": checkpoint.training_settings,
        **checkpoint.codecs,
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
