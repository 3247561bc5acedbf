"""Checkpoints: a run's whole state in one safetensors file, sealed with a checksum.

The file holds every parameter under its dotted name, Adam's two moments, and as metadata one JSON text with
all settings, the vocabularies and the step. Random states need no place: they follow from seed and step.
"""

import hashlib
import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from npformer.atomic import write_atomically
from npformer.data.vocabulary import TextCodec
from npformer.errors import UserError
from npformer.models import KINDS, Model, ModelConfig, build, kind_of
from npformer.training.config import TrainingConfig

FORMAT = 1  # counts up when a file of before can no longer be read

# how the metadata begin in the file, where their quotation marks are escaped
_LABEL = rb"{\"sha256\": \""
_NO_DIGEST = b"0" * 64


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that a run needs to go on, and all that a model needs to translate."""

    step: int
    best_loss: float | None  # the lowest validation objective so far
    model_config: ModelConfig
    training_config: TrainingConfig
    source: TextCodec
    target: TextCodec
    dataset: dict[str, Any]  # the description from which open_dataset makes it anew
    fingerprint: str  # of the dataset
    backend: str  # this and the number of threads decide the last bits of a sum
    threads: int | None
    parameters: dict[str, np.ndarray]
    m: np.ndarray  # (P,) Adam's moments
    v: np.ndarray  # (P,)

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

    Errors: UserError for a file that is missing, cut short, altered in any byte, of another kind, or of
    another version of the format.
    """
    data = _read(Path(path))
    try:
        tensors = safetensors.load(data)
    except SafetensorError as error:
        raise UserError(
            f"{path} is not a whole safetensors file ({error}): it was cut short or altered, or is of "
            "another kind; use another checkpoint"
        ) from None
    settings = _metadata(data, path)
    m, v = tensors.pop("adam.m"), tensors.pop("adam.v")
    return Checkpoint(
        step=settings["step"],
        best_loss=settings["best_loss"],
        model_config=KINDS[settings.get("kind", "transformer")]().replace(**settings["model"]),
        training_config=TrainingConfig(**settings["training"]),
        source=TextCodec.from_json(settings["source"]),
        target=TextCodec.from_json(settings["target"]),
        dataset=settings["dataset"],
        fingerprint=settings["fingerprint"],
        backend=settings["backend"],
        threads=settings["threads"],
        parameters=tensors,
        m=m,
        v=v,
    )


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    """The file's bytes, with the digest of all others among them."""
    settings = {
        "sha256": _NO_DIGEST.decode(),  # comes first, where _LABEL finds it
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
    }
    tensors = checkpoint.parameters | {"adam.m": checkpoint.m, "adam.v": checkpoint.v}
    # one entry: the library writes several in an order that changes from call to call
    data = safetensors.save(tensors, metadata={"npformer": json.dumps(settings)})
    start = data.index(_LABEL) + len(_LABEL)
    return _with_digest(data, start, hashlib.sha256(data).hexdigest().encode())


def _metadata(data: bytes, path: str | PathLike[str]) -> dict[str, Any]:
    """The settings in a sound safetensors file; UserError if it is not ours, or not what was written."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    text = header.get("__metadata__", {}).get("npformer")
    if text is None or _LABEL not in data:
        raise UserError(
            f"{path} is a safetensors file, but no checkpoint of npformer, or an altered one: use another"
        )
    start = data.index(_LABEL) + len(_LABEL)
    found = data[start : start + len(_NO_DIGEST)]
    if found != hashlib.sha256(_with_digest(data, start, _NO_DIGEST)).hexdigest().encode():
        raise UserError(
            f"{path} was altered after it was written (its checksum differs): use another checkpoint"
        )
    settings = json.loads(text)
    if settings["format"] != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {settings['format']}, and this npformer reads format {FORMAT}: "
            "use the version of npformer that wrote it"
        )
    return settings


def _with_digest(data: bytes, start: int, digest: bytes) -> bytes:
    return data[:start] + digest + data[start + len(digest) :]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}: check the name and the folder") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give the checkpoint in it") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its permissions") from None
