"""Checkpoints: a run's whole state in one safetensors file, sealed with a checksum.

The file holds every parameter under its dotted name, Adam's two moments where a run may go on from it, and as
metadata one JSON text with all settings, the vocabularies and the step. Random states need no place: they
follow from seed and step.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from npformer.atomic import write_atomically
from npformer.data.codecs import Codec, codec_from_json, require_fit
from npformer.errors import UserError
from npformer.models import KINDS, Model, ModelConfig, build, kind_of
from npformer.sealed import read_sealed, sealed_bytes
from npformer.training.config import TrainingConfig

FORMAT = 1  # counts up when a file of before can no longer be read


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that a run needs to go on, and all that a model needs to translate."""

    step: int
    best_loss: float | None  # the lowest validation objective so far
    model_config: ModelConfig
    training_config: TrainingConfig
    source: Codec
    target: Codec
    dataset: dict[str, Any]  # the description from which open_dataset makes it anew
    fingerprint: str  # of the dataset
    backend: str  # this and the number of threads decide the last bits of a sum
    threads: int | None
    workers: int  # and these
    ranks: int
    parameters: dict[str, np.ndarray]
    m: np.ndarray | None  # (P,) Adam's moments; None where no run can go on from here
    v: np.ndarray | None  # (P,)

    def model(self, backend: str = "numpy") -> Model:
        """The model with the parameters of the checkpoint, in the memory of "numpy" or "cupy"."""
        dtype = next(iter(self.parameters.values())).dtype
        model = build(self.model_config, dtype=dtype)
        model.load_state(self.parameters)
        return model.to(backend)


def save_checkpoint(checkpoint: Checkpoint, path: str | PathLike[str]) -> None:
    """Write the checkpoint so that a crash at any instant leaves the file of before or the new one.

    The same state gives the same bytes. Errors: UserError where the disk is full or cannot be written, with
    the file of before untouched.
    """
    data = _to_bytes(checkpoint)
    try:
        write_atomically(Path(path), data)
    except OSError as error:
        megabytes = -(-len(data) // 100_000) / 10  # rounded up
        raise UserError(
            f"the checkpoint of step {checkpoint.step} could not be written to {path} ({error.strerror}), "
            f"and what was there before is untouched: see to {megabytes:.1f} MB of space, then resume"
        ) from None


def load_checkpoint(path: str | PathLike[str]) -> Checkpoint:
    """Read what save_checkpoint wrote.

    Errors: UserError for a file that is missing, cut short, altered in any byte, of another kind, of another
    version of the format, or whose codecs do not fit its model.
    """
    tensors, settings = read_sealed(path)
    if settings["format"] != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {settings['format']}, and this npformer reads format {FORMAT}: "
            "use the version of npformer that wrote it"
        )
    m, v = tensors.pop("adam.m", None), tensors.pop("adam.v", None)
    model_config = KINDS[settings.get("kind", "transformer")]().replace(**settings["model"])
    source, target = codec_from_json(settings["source"]), codec_from_json(settings["target"])
    require_fit(source, model_config.source_vocab, "source")
    require_fit(target, model_config.target_vocab, "target")
    return Checkpoint(
        step=settings["step"],
        best_loss=settings["best_loss"],
        model_config=model_config,
        training_config=TrainingConfig(**settings["training"]),
        source=source,
        target=target,
        dataset=settings["dataset"],
        fingerprint=settings["fingerprint"],
        backend=settings["backend"],
        threads=settings["threads"],
        workers=settings.get("workers", 1),
        ranks=settings.get("ranks", 1),
        parameters=tensors,
        m=m,
        v=v,
    )


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    """The file's bytes, sealed."""
    settings = {
        "format": FORMAT,
        "step": checkpoint.step,
        "best_loss": checkpoint.best_loss,
        "kind": kind_of(checkpoint.model_config),
        "model": checkpoint.model_config.to_dict(),
        "training": checkpoint.training_config.to_dict(),
        "source": checkpoint.source.to_json(),
        "target": checkpoint.target.to_json(),
        "dataset": checkpoint.dataset,
        "fingerprint": checkpoint.fingerprint,
        "backend": checkpoint.backend,
        "threads": checkpoint.threads,
        "workers": checkpoint.workers,
        "ranks": checkpoint.ranks,
    }
    moments = {"adam.m": checkpoint.m, "adam.v": checkpoint.v}
    tensors = checkpoint.parameters | {name: moment for name, moment in moments.items() if moment is not None}
    return sealed_bytes(tensors, settings)
