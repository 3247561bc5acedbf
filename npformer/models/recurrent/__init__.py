"""Recurrent translators: encoder and decoder are LSTMs or GRUs, with or without attention."""

from npformer.models.recurrent.config import RecurrentConfig
from npformer.models.recurrent.decoder import RecurrentDecoder
from npformer.models.recurrent.encoder import Bridge, RecurrentEncoder
from npformer.models.recurrent.model import RecurrentTranslator, TranslatorCache

__all__ = [
    "Bridge",
    "RecurrentConfig",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentTranslator",
    "TranslatorCache",
]
