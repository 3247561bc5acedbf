"""Trained translators: `load`, and the translators that ship, each a file NAME.safetensors in this folder."""

from npformer.pretrained.attention import SentenceAttention
from npformer.pretrained.card import Card, MeasuredScore
from npformer.pretrained.loading import LoadedTranslator, load
from npformer.pretrained.store import (
    Pretrained,
    names,
    read_pretrained,
    save_pretrained,
    weights_fingerprint,
)

__all__ = [
    "Card",
    "LoadedTranslator",
    "MeasuredScore",
    "Pretrained",
    "SentenceAttention",
    "load",
    "names",
    "read_pretrained",
    "save_pretrained",
    "weights_fingerprint",
]
