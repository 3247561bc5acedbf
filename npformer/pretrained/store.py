"""The files of trained translators: weights in float16, with codecs, configuration and card, sealed."""

import hashlib
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from npformer.atomic import write_atomically
from npformer.data.codecs import Codec, codec_from_json
from npformer.decoding import Translator
from npformer.errors import UserError
from npformer.models import KINDS, Model, build, kind_of
from npformer.pretrained.card import Card
from npformer.sealed import read_sealed, sealed_bytes
from npformer.settings import choose_preset
from npformer.training import Checkpoint

FORMAT = 1  # counts up when a file of before can no longer be read
FOLDER = Path(__file__).parent
SUFFIX = ".safetensors"

_KEY = "npformer translator"  # unlike a checkpoint's: neither is taken for the other


class Pretrained(NamedTuple):
    """A trained translator, ready to be used."""

    model: Model  # float32
    source: Codec
    target: Codec
    card: Card


def names() -> list[str]:
    """The translators that ship with this copy of the package."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load(name: str) -> Pretrained:
    """The translator of that name, or the one in a file NAME.safetensors that save_pretrained wrote.

    Errors: UserError for an unknown name, with the nearest; for a file that is missing, altered or of another
    kind; for codecs that do not fit the model.
    """
    tensors, settings = read_sealed(
        _path(name), key=_KEY, what="translator", remedy="install npformer anew, or export it anew"
    )
    if settings["format"] != FORMAT:
        raise UserError(
            f"the translator {name} has format {settings['format']}, and this npformer reads {FORMAT}: "
            "use the version of npformer that it came with"
        )
    model = build(KINDS[settings["kind"]]().replace(**settings["model"]), dtype=np.float32)
    model.load_state(tensors)
    source, target = codec_from_json(settings["source"]), codec_from_json(settings["target"])
    Translator(model, source, target)  # refuses codecs that do not fit
    return Pretrained(model, source, target, Card.from_dict(settings["card"]))


def save_pretrained(checkpoint: Checkpoint, path: str | PathLike[str], card: Card) -> None:
    """Write the model of a checkpoint in float16, with its codecs and its card. The same bytes each time.

    Errors: UserError for weights that float16 cannot hold, codecs that do not fit the model, scores that were
    measured with other weights, or a file that cannot be written.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise UserError(f"{path} has another ending than {SUFFIX}: that is what the file is")
    weights = {name: _half(name, value) for name, value in checkpoint.parameters.items()}
    Translator(checkpoint.model(), checkpoint.source, checkpoint.target)  # refuses codecs that do not fit
    fingerprint = weights_fingerprint({name: half.astype(np.float32) for name, half in weights.items()})
    for each in card.scores:
        if each.weights != fingerprint:
            raise UserError(
                f"the score on {each.reference} was measured with other weights ({each.weights}, and these "
                f"are {fingerprint}): score the exported file, with npformer score --pretrained FILE --json"
            )
    settings = {
        "format": FORMAT,
        "kind": kind_of(checkpoint.model_config),
        "model": checkpoint.model_config.to_dict(),
        "source": checkpoint.source.to_json(),
        "target": checkpoint.target.to_json(),
        "card": card.to_dict(),
        # for who asks where it came from
        "step": checkpoint.step,
        "training": checkpoint.training_config.to_dict(),
    }
    try:
        write_atomically(path, sealed_bytes(weights, settings, key=_KEY))
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): give another place") from None


def weights_fingerprint(weights: dict[str, np.ndarray]) -> str:
    """Twelve hexadecimal digits that differ for weights that differ, before rounding to float16 and after."""
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(name.encode() + value.tobytes())
    return digest.hexdigest()[:12]


def _half(name: str, value: np.ndarray) -> np.ndarray:
    """The numbers rounded to float16, which has eleven bits of them. Errors: UserError beyond ±65,504."""
    with np.errstate(over="ignore"):
        half = value.astype(np.float16)
    if not np.isfinite(half).all():
        raise UserError(f"{name} has weights beyond what float16 holds: this model cannot be exported")
    return half


def _path(name: str) -> Path:
    if name.endswith(SUFFIX):
        return Path(name)
    if not names():
        raise UserError(
            f"there is no translator {name!r}: none ships with this copy of npformer; "
            "train one with npformer train, and give its run"
        )
    return FOLDER / (choose_preset(name, names(), "translator") + SUFFIX)
