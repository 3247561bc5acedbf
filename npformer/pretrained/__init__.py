"""Trained models: `load`, what it returns, and the translators that ship, each a file in this folder."""

from npformer.pretrained.attention import SentenceAttention, TextAttention
from npformer.pretrained.card import Card, Limit
from npformer.pretrained.encoders import ClassProbability, TextClassifier, TextEncoder
from npformer.pretrained.loaded import GapFiller, TextGenerator, Translator
from npformer.pretrained.loading import load
from npformer.pretrained.measured_score import MeasuredScore
from npformer.pretrained.saliency import Saliency
from npformer.pretrained.store import (
    Pretrained,
    names,
    read_pretrained,
    save_pretrained,
    weights_fingerprint,
)
from npformer.pretrained.translation import Translation

__all__ = [
    "Card",
    "ClassProbability",
    "GapFiller",
    "Limit",
    "MeasuredScore",
    "Pretrained",
    "Saliency",
    "SentenceAttention",
    "TextAttention",
    "TextClassifier",
    "TextEncoder",
    "TextGenerator",
    "Translation",
    "Translator",
    "load",
    "names",
    "read_pretrained",
    "save_pretrained",
    "weights_fingerprint",
]
