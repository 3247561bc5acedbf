"""Recurrent translators: an encoder and a decoder of LSTMs or GRUs, with attention or without."""

from npformer.recurrent.config import RecurrentConfig
from npformer.recurrent.decoder import RecurrentDecoder
from npformer.recurrent.encoder import Bridge, RecurrentEncoder
from npformer.recurrent.model import RecurrentTranslator, TranslatorCache

__all__ = [
    "Bridge",
    "RecurrentConfig",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentTranslator",
    "TranslatorCache",
]
