"""The trained translators that ship with the package: a file each, `NAME.safetensors` in this folder."""

from npformer.pretrained.card import Card, Measured
from npformer.pretrained.store import Pretrained, load, names, save_pretrained, weights_fingerprint

__all__ = [
    "Card",
    "Measured",
    "Pretrained",
    "load",
    "names",
    "save_pretrained",
    "weights_fingerprint",
]
