"""The encoder-decoder Transformer and its configurations."""

from npformer.transformer.config import TransformerConfig
from npformer.transformer.language_models import LanguageModelCache, MaskedWordModel, NextWordModel
from npformer.transformer.layers import DecoderLayer, EncoderLayer
from npformer.transformer.model import Transformer, TransformerCache, shifted_right
from npformer.transformer.presets import PRESETS
from npformer.transformer.stacks import Decoder, Encoder
from npformer.transformer.universal import UniversalDecoder, UniversalEncoder

__all__ = [
    "PRESETS",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "LanguageModelCache",
    "MaskedWordModel",
    "NextWordModel",
    "Transformer",
    "TransformerCache",
    "TransformerConfig",
    "UniversalDecoder",
    "UniversalEncoder",
    "shifted_right",
]
