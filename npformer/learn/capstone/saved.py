"""The trained Transformer in the learner's folder: its parameters, Adam's moments, and whose parts it has."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from npformer.data.codecs import Codec, codec_from_json
from npformer.errors import UserError
from npformer.learn.capstone.assemble import capstone_config
from npformer.learn.capstone.parts import NAMES, Part
from npformer.learn.tasks import Folder
from npformer.models.transformer import Transformer
from npformer.storage.atomic import reason, write_atomically
from npformer.storage.checksummed import checksummed_bytes, read_checksummed
from npformer.storage.json_files import require_entries, require_version

NAME = "transformer.safetensors"  # of the file in the learner's folder
KEY = "npformer-capstone"
FORMAT = 1  # increases when an older npformer could no longer read a new file
ENTRIES = {
    "sha256": str,
    "format": int,
    "steps": int,
    "step": int,
    "own": list[str],
    "fingerprint": str,
    "source": str,
    "target": str,
    "losses": list[float],
}
TENSORS = ("values", "m", "v")  # each (P,)
SIZES = {"d_model": 64, "d_ff": 128, "n_heads": 4, "n_layers": 2, "max_length": 64}


@dataclass
class SavedTransformer:
    """A Transformer, trained or in training.

    Args:
        steps: The number of steps of the whole training.
        own: The names of the parts that were the learner's.
        fingerprint: The fingerprint of the learner's files.
        source: The codec of the source language as JSON.
        target: The codec of the target language as JSON.
        step: The number of steps so far.
        losses: The loss of each step so far.
        tensors: The parameters and Adam's moments by name, each (P,). Empty before the first step.
    """

    steps: int
    own: list[str]
    fingerprint: str
    source: str
    target: str
    step: int = 0
    losses: list[float] = field(default_factory=list)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """True if all steps of the training are done."""
        return self.step >= self.steps

    @property
    def codecs(self) -> tuple[Codec, Codec]:
        """The codecs of the source language and of the target language."""
        return codec_from_json(self.source), codec_from_json(self.target)

    @property
    def sizes(self) -> dict[str, int]:
        """The settings of the Transformer: its sizes, and those of its vocabularies."""
        source, target = self.codecs
        return SIZES | {"source_vocab": len(source.vocabulary), "target_vocab": len(target.vocabulary)}

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        settings = {name: value for name, value in vars(self).items() if name != "tensors"}
        return checksummed_bytes(self.tensors, {"format": FORMAT, **settings}, key=KEY)

    def save(self, folder: Path) -> Path:
        """Write the file into the learner's folder and return its path.

        Raises:
            UserError: If it cannot be written.
        """
        path = folder / NAME
        try:
            write_atomically(path, self.to_bytes())
        except OSError as error:
            raise UserError(
                f"{path} cannot be written ({reason(error)}): check its place and the disk"
            ) from None
        return path


def load_saved(path: Path) -> SavedTransformer:
    """Return the Transformer of a file.

    Raises:
        UserError: If there is none, or if it is damaged.
    """
    remedy = "move it away, and npformer build --train trains a new one"
    tensors, settings = read_checksummed(path, key=KEY, what="trained Transformer", remedy=remedy)
    what = f"the text of settings in {path}"
    require_version(settings, what, FORMAT)
    require_entries(settings, ENTRIES, what, remedy)
    if set(tensors) not in (set(), set(TENSORS)):
        raise UserError(f"{path} does not hold the arrays {', '.join(TENSORS)}: {remedy}")
    own = [name for name in NAMES if name in settings["own"]]
    names = ("steps", "fingerprint", "source", "target", "step", "losses")
    saved = SavedTransformer(**{name: settings[name] for name in names}, own=own, tensors=tensors)
    if not _is_possible(saved):
        raise UserError(f"{path} holds arrays or settings that do not belong together: {remedy}")
    return saved


def _is_possible(saved: SavedTransformer) -> bool:
    """Return whether the arrays and the settings of a file could come from a training."""
    counts = 0 <= saved.step <= saved.steps and len(saved.losses) == saved.step
    if not counts or bool(saved.step) != bool(saved.tensors):
        return False
    try:
        shape = (Transformer(capstone_config(**saved.sizes)).count_parameters(),)  # (P,)
    except (UserError, AttributeError):  # codecs that cannot be read, or that are not of words
        return False
    arrays = saved.tensors.values()
    return all(a.shape == shape and a.dtype == np.float32 and bool(np.isfinite(a).all()) for a in arrays)


def find_saved(folder: Path) -> SavedTransformer | None:
    """Return the Transformer of the learner's folder, or None if there is none."""
    path = folder / NAME
    return load_saved(path) if path.exists() else None


def fingerprint_of(folder: Folder, parts: Sequence[Part]) -> str:
    """Return a fingerprint of the learner's files for these parts."""
    digest = hashlib.sha256()
    for part in parts:
        for exercise in part.exercises:
            digest.update(exercise.name.encode() + b"\0" + folder.file(exercise).read_bytes() + b"\0")
    return digest.hexdigest()[:16]
