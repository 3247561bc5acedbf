"""The encoder-decoder Transformer and its configurations."""

from npformer.transformer.config import TransformerConfig
from npformer.transformer.layers import DecoderLayer, EncoderLayer
from npformer.transformer.model import Transformer, TransformerCache, shifted_right
from npformer.transformer.presets import PRESETS
from npformer.transformer.stacks import Decoder, Encoder

__all__ = [
    "PRESETS",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "Transformer",
    "TransformerCache",
    "TransformerConfig",
    "shifted_right",
]
