"""The files of trained translators: weights in float16, codecs, configuration, model card and checksum."""

import hashlib
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.data.codecs import Codec, codec_from_json, require_fit
from npformer.errors import UserError, in_context
from npformer.models.registry import Model, config_from_settings, model_from_state
from npformer.pretrained.card import Card
from npformer.pretrained.loaded import Translator
from npformer.storage.atomic import write_file
from npformer.storage.checkpoint import Checkpoint, check_floats
from npformer.storage.checksummed import checksummed_bytes, read_checksummed
from npformer.storage.json_files import require_entries, require_version
from npformer.storage.old_names import original_parameter, rename_parameters, rename_settings
from npformer.validation import require_name

FORMAT = 1  # increases when an older npformer could no longer read a new file
REMEDY = "install npformer again, or export it again"
# the entries of the metadata and their types
ENTRIES = {"sha256": str, "kind": str, "model": dict, "source": str, "target": str, "card": dict}
OPTIONAL_ENTRIES = {"format": int, "step": int, "training": dict}
FOLDER = Path(__file__).parent
SUFFIX = ".safetensors"

_KEY = "npformer translator"  # differs from the key of a checkpoint, so that the two kinds of files differ
_LONGEST_HEADER = 10_000_000


class Pretrained(NamedTuple):
    """The content of a translator's file."""

    model: Model  #: float32
    source: Codec
    target: Codec
    card: Card


def names() -> list[str]:
    """Return the names of the translators that ship with this copy of the package."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def pretrained_path(name: str | PathLike[str]) -> Path:
    """Return the file of a translator that ships, or the path itself if `name` is a file NAME.safetensors.

    Raises:
        UserError: If no translator of this name ships. The message suggests the most similar name.
    """
    text = fspath(name)
    if text.endswith(SUFFIX):
        return Path(text)
    if not names():
        raise UserError(
            f"there is no translator {text!r}: none ships with this copy of npformer; "
            "train one with npformer train, and give the folder of its run"
        )
    return FOLDER / (require_name(text, names(), "translator") + SUFFIX)


def is_pretrained_file(path: Path) -> bool:
    """Return True if the header of a file says that `save_pretrained` wrote it."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            return f'"{_KEY}":'.encode() in file.read(min(length, _LONGEST_HEADER))
    except OSError:  # the function that reads the file reports it
        return False


def read_pretrained(name: str | PathLike[str]) -> Pretrained:
    """Read a translator that ships, or a file NAME.safetensors that `save_pretrained` wrote.

    Raises:
        UserError: If the name is unknown; if the file is missing, damaged or of another kind; or if the
            codecs do not fit the model.
    """
    tensors, settings = read_checksummed(
        pretrained_path(name),
        key=_KEY,
        what="translator",
        remedy=REMEDY,
    )
    what = f"the translator {name}"
    require_version(settings, what, FORMAT)
    require_entries(settings, ENTRIES, what, REMEDY, optional=OPTIONAL_ENTRIES)
    check_floats(tensors, what)
    with in_context(what):
        config = config_from_settings(settings["kind"], rename_settings(settings["model"]))
        model = model_from_state(config, rename_parameters(tensors), np.float32)
        source, target = codec_from_json(settings["source"]), codec_from_json(settings["target"])
        require_fit(config, {"source": source, "target": target})
        return Pretrained(model, source, target, Card.from_dict(settings["card"]))


def save_pretrained(checkpoint: Checkpoint, path: str | PathLike[str], card: Card) -> None:
    """Write the model of a checkpoint in float16, with its codecs and its model card.

    The same checkpoint and card give the same bytes.

    Args:
        checkpoint: The checkpoint.
        path: The file to write, NAME.safetensors.
        card: The model card.

    Raises:
        UserError: If float16 cannot hold the weights, if the codecs do not fit the model, if the scores on
            the card were measured with other weights, or if the file cannot be written.
    """
    path = _named_path(path)
    weights = {name: _to_float16(name, value) for name, value in checkpoint.parameters.items()}
    Translator.from_checkpoint(checkpoint)  # refuses codecs that do not fit
    _require_own_scores(card, weights)
    settings = {
        "format": FORMAT,
        "kind": checkpoint.model_kind,
        "model": checkpoint.model_settings,
        **checkpoint.codecs,
        "card": card.to_dict(),
        # no code reads these two; they document the origin of the weights
        "step": checkpoint.step,
        "training": checkpoint.training_settings,
    }
    write_file(path, checksummed_bytes(weights, settings, key=_KEY))


def replace_card(
    name: str | PathLike[str], path: str | PathLike[str], card: Card, *, target: Codec | None = None
) -> None:
    """Write the file of a translator again, with another model card.

    Args:
        name: A translator that ships, or its file.
        path: The file to write, NAME.safetensors.
        card: The model card.
        target: Another codec of the target language with the same ids, or None to keep it.

    Raises:
        UserError: If the file cannot be read or written, or if the scores on the card were measured with
            other weights.
    """
    read_pretrained(name)  # checks the whole file
    tensors, settings = read_checksummed(pretrained_path(name), key=_KEY, what="translator", remedy=REMEDY)
    _require_own_scores(card, tensors)
    del settings["sha256"]  # of the whole file, which changes
    settings["card"] = card.to_dict()
    if target is not None:
        settings["target"] = target.to_json()
    write_file(_named_path(path), checksummed_bytes(tensors, settings, key=_KEY))


def _named_path(path: str | PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix != SUFFIX:
        raise UserError(f"{path} does not end in {SUFFIX}: give a name with this ending")
    return path


def _require_own_scores(card: Card, weights: dict[str, Array]) -> None:
    """Raise UserError if a score on a card was measured with other weights than these, in float16."""
    fingerprint = weights_fingerprint({name: half.astype(np.float32) for name, half in weights.items()})
    for each in card.scores:
        if each.weights != fingerprint:
            raise UserError(
                f"the score on {each.reference} was measured with other weights ({each.weights}, and these "
                f"are {fingerprint}): score the exported file, with npformer score --model FILE --json"
            )


def weights_fingerprint(weights: dict[str, Array]) -> str:
    """Return twelve hexadecimal digits that identify the weights, by their names and their bytes."""
    digest = hashlib.sha256()
    originals = {original_parameter(name): value for name, value in weights.items()}
    for name, value in sorted(originals.items()):
        digest.update(name.encode() + value.tobytes())
    return digest.hexdigest()[:12]


def _to_float16(name: str, value: Array) -> Array:
    """Round the numbers to float16; raise UserError for numbers beyond ±65,504, which it cannot hold."""
    with np.errstate(over="ignore"):
        half = value.astype(np.float16)
    if not np.isfinite(half).all():
        raise UserError(f"{name} has weights beyond what float16 holds: this model cannot be exported")
    return half
